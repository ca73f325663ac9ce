#!/usr/bin/env bash
# What checks the formats for clusters: sparkrun, and Kubernetes' schemas (PyPI kubernetes-validate).
#
#   clusters.sh sparkrun     install sparkrun if it is missing; print its Python
#   clusters.sh kubernetes   install kubernetes-validate if it is missing; print its Python
#
# sparkrun needs Python 3.12 or newer, which a bare Debian 12 has not: one on PATH or of pyenv is
# used, else uv (a package of PyPI) is asked to bring one. Where none can be had the exit code is 3.
set -euo pipefail

SPARKRUN=0.4.2
KUBERNETES=1.37.0
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/sparkrecipes-ci
PIP="-m pip install -qq --disable-pip-version-check"

say() { printf '[clusters] %s\n' "$*" >&2; }

runs() { [ -n "$1" ] && "$1" -c 'import sys, venv; sys.exit(sys.version_info < (3, 12))' 2>/dev/null; }

# A Python of 3.12 or newer; nothing where there is none.
python_312() {
    local version found
    for version in 3.12 3.13 3.14; do
        for found in "$(command -v "python$version" || true)" \
            "${PYENV_ROOT:-$HOME/.pyenv}"/versions/"$version".*/bin/"python$version"; do
            if runs "$found"; then
                printf '%s\n' "$found"
                return
            fi
        done
    done
    python3 -m venv "$CACHE/uv" >&2 && "$CACHE/uv/bin/python" $PIP uv >&2 || return 0
    found=$("$CACHE/uv/bin/uv" python install --quiet 3.12 >&2 && "$CACHE/uv/bin/uv" python find 3.12) || true
    if runs "${found-}"; then printf '%s\n' "$found"; fi
}

# folder, python, requirement
environment() {
    local folder=$1 stamp=$1/.complete
    mkdir -p "$CACHE"
    exec 9>"$folder.lock"
    flock 9
    if [ ! -e "$stamp" ]; then
        say "installing $3 into $folder"
        rm -rf "$folder"
        "$2" -m venv "$folder" >&2
        "$folder/bin/python" $PIP "$3" >&2
        touch "$stamp"
    fi
    exec 9>&-
    printf '%s\n' "$folder/bin/python"
}

case ${1-} in
sparkrun)
    folder=$CACHE/sparkrun-$SPARKRUN
    python=$folder/bin/python
    [ -e "$folder/.complete" ] || python=$(python_312)
    if [ -z "$python" ]; then
        say "no Python 3.12 or newer, and none could be had: sparkrun's own check is not made"
        exit 3
    fi
    environment "$folder" "$python" "sparkrun==$SPARKRUN"
    ;;
kubernetes) environment "$CACHE/kubernetes-$KUBERNETES" python3 "kubernetes-validate==$KUBERNETES" ;;
*)
    say "usage: clusters.sh sparkrun | kubernetes"
    exit 2
    ;;
esac
