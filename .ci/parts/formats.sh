#!/usr/bin/env bash
# The real readers of what `command --format` writes: docker-compose, systemd-analyze, and a parser
# of the Compose Specification.
#
#   formats.sh env      install what is missing; print the Python that has the parser
#
# Debian 12 has docker-compose 1.29, which is older than some keys of the specification; the parser
# (a wheel, in an environment outside the checkout) knows them all and refuses unknown ones.
set -euo pipefail

PARSER=compose-spec==0.2.1
PYTHON=${PYTHON:-python3}
PARTS=$(dirname "$0")
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/sparkrecipes-ci
ENVIRONMENT=$CACHE/formats-${PARSER#*==}
STAMP=$ENVIRONMENT/.complete

say() { printf '[formats] %s\n' "$*" >&2; }

environment() {
    bash "$PARTS/packages.sh" docker-compose systemd >&2
    mkdir -p "$CACHE"
    exec 9>"$ENVIRONMENT.lock"
    flock 9
    if [ ! -e "$STAMP" ] || ! "$ENVIRONMENT/bin/python" -c 'import compose_spec'; then
        say "building $ENVIRONMENT"
        rm -rf "$ENVIRONMENT"
        "$PYTHON" -m venv "$ENVIRONMENT"
        "$ENVIRONMENT/bin/python" -m pip install -qq --disable-pip-version-check "$PARSER" >&2
        "$ENVIRONMENT/bin/python" -c 'import compose_spec' >&2
        touch "$STAMP"
    fi
    exec 9>&-
    printf '%s\n' "$ENVIRONMENT/bin/python"
}

case ${1-} in
env) environment ;;
*)
    say "usage: formats.sh env"
    exit 2
    ;;
esac
