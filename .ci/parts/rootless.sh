#!/usr/bin/env bash
# A real rootless Docker Engine for tests: dockerd of an unprivileged user that is made for it.
#
#   rootless.sh install      install what is missing
#   rootless.sh start RUN    make the user, start its engine; print the user's name
#   rootless.sh stop RUN     stop it, and remove the user and all that is its
#
# RUN is a folder: RUN/home is the user's home (images are in its .local/share/docker, the default),
# RUN/run its XDG_RUNTIME_DIR with docker.sock. The engine is started by the script that Debian ships
# for it. Where a system gives its tun device to root alone, the engine sees one for everybody, in a
# mount namespace of its own: nothing is changed for others.
set -euo pipefail

PACKAGES=(docker.io uidmap rootlesskit slirp4netns busybox-static iptables iproute2)
SCRIPT=/usr/share/docker.io/contrib/dockerd-rootless.sh

. "$(dirname "$0")/engine.sh"

say() { printf '[rootless] %s\n' "$*" >&2; }

make_user() {
    local run=$1 name=sr-ci-$$
    useradd --create-home --home-dir "$run/home" --shell /bin/sh --user-group "$name"
    printf '%s\n' "$name" >"$run/user"
    grep -q "^$name:" /etc/subuid && grep -q "^$name:" /etc/subgid || {
        say "useradd gave $name no range in /etc/subuid and /etc/subgid"
        return 1
    }
    install -d -m 700 -o "$name" -g "$name" "$run/run"
    printf '%s\n' "$name"
}

# Becomes the engine: its process id is that of this shell.
become_engine() {
    local run=$1 name=$2
    printf '%s\n' "$BASHPID" >"$run/pid"
    exec unshare --mount --propagation private bash -c '
        mount --bind "$1/tun" /dev/net/tun
        exec setpriv --reuid "$2" --regid "$2" --init-groups env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin \
            HOME="$1/home" XDG_RUNTIME_DIR="$1/run" \
            DOCKERD_ROOTLESS_ROOTLESSKIT_FLAGS="--state-dir=$1/run/rootlesskit" "$3"
    ' engine "$run" "$name" "$SCRIPT"
}

start() {
    local run=$1 name
    mkdir -p "$run"
    chmod 755 "$run"
    name=$(make_user "$run")
    mknod -m 666 "$run/tun" c 10 200
    become_engine "$run" "$name" </dev/null >"$run/engine.log" 2>&1 &
    if ! wait_for "unix://$run/run/docker.sock"; then
        say "the engine did not start; its log ends with:"
        tail -n 30 "$run/engine.log" >&2
        stop "$run"
        exit 1
    fi
    say "started an engine of $name at unix://$run/run/docker.sock"
    printf '%s\n' "$name"
}

# All processes of the user that was made here, and of no other.
processes() { pgrep -U "$1" || true; }

stop() {
    local run=$1 name signal
    [ ! -e "$run/pid" ] || kill "$(cat "$run/pid")" 2>/dev/null || true
    [ -e "$run/user" ] || return 0
    name=$(cat "$run/user")
    id "$name" >/dev/null 2>&1 || return 0
    for signal in TERM KILL; do
        for _ in $(seq 50); do
            [ -n "$(processes "$name")" ] || break 2
            sleep 0.3
        done
        processes "$name" | xargs --no-run-if-empty kill -s "$signal" 2>/dev/null || true
    done
    userdel "$name"
    rm -rf "$run/home" "$run/run" "$run/tun" "$run/pid" "$run/user"
}

case ${1-} in
install) bash "$(dirname "$0")/packages.sh" "${PACKAGES[@]}" ;;
start) start "$2" ;;
stop) stop "$2" ;;
*)
    say "usage: rootless.sh install | start RUN | stop RUN"
    exit 2
    ;;
esac
