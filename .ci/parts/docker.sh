#!/usr/bin/env bash
# A real Docker Engine for tests.
#
#   docker.sh install      install the engine's packages where they are missing
#   docker.sh start RUN    start an engine of our own; print its DOCKER_HOST
#   docker.sh stop RUN     stop the engine that was started in RUN
#
# RUN is a folder for what lives as long as the engine (socket, pid, log). Images stay in a
# data-root outside the checkout, so that a later run need not make them again; containers and
# volumes that an interrupted run left in it are removed at the start: this engine is the tests'
# own. A run waits until the engine of another one has left the data-root.
#
# Where DOCKER_HOST leads to an engine, or one runs on this system, `start` uses that one. An engine
# of our own has a bridge and addresses of its own and writes no firewall rules: a second engine with
# the default bridge would give its containers the same addresses, and requests would go astray.
set -euo pipefail

CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/sparkrecipes-ci
PACKAGES=(docker.io busybox-static iptables iproute2)
LONGEST_WAIT_S=1800

. "$(dirname "$0")/engine.sh"

say() { printf '[docker] %s\n' "$*" >&2; }

remove_leftovers() {
    docker --host "$1" ps --all --quiet |
        xargs --no-run-if-empty docker --host "$1" rm --force --volumes >/dev/null
    docker --host "$1" volume ls --quiet |
        xargs --no-run-if-empty docker --host "$1" volume rm >/dev/null
}

# A bridge with addresses of the range that is set aside for tests (RFC 2544).
make_bridge() {
    local name=sr-ci-$$ net
    net=$(for n in $(shuf -i 0-255); do
        ip -4 route | grep -q "^198\.18\.$n\.0/24" || { echo "198.18.$n" && break; }
    done)
    ip link add name "$name" type bridge
    ip addr add "$net.1/24" dev "$name"
    ip link set "$name" up
    printf '%s\n' "$name"
}

start() {
    local run=$1 present=${DOCKER_HOST:-unix:///var/run/docker.sock}
    if answers "$present"; then
        say "using the engine at $present"
        printf '%s\n' "$present"
        return
    fi
    local host=unix://$run/docker.sock
    mkdir -p "$run" "$CACHE/docker"
    # Held by the engine as long as it lives, however it ends.
    exec 9>"$CACHE/docker.lock"
    flock --nonblock 9 || say "waiting for the engine of another run"
    flock --wait "$LONGEST_WAIT_S" 9
    make_bridge >"$run/bridge"
    dockerd --host "$host" --data-root "$CACHE/docker" --exec-root "$run/exec" \
        --pidfile "$run/dockerd.pid" --bridge "$(cat "$run/bridge")" \
        --iptables=false --ip-masq=false </dev/null >"$run/dockerd.log" 2>&1 &
    if ! wait_for "$host"; then
        say "the engine did not start; its log ends with:"
        tail -n 30 "$run/dockerd.log" >&2
        exit 1
    fi
    remove_leftovers "$host"
    say "started an engine at $host"
    printf '%s\n' "$host"
}

stop() {
    local run=$1 pid
    if [ -e "$run/dockerd.pid" ]; then
        pid=$(cat "$run/dockerd.pid")
        kill "$pid" 2>/dev/null || true
        for _ in $(seq 100); do
            kill -0 "$pid" 2>/dev/null || break
            sleep 0.3
        done
        ! kill -0 "$pid" 2>/dev/null || { say "engine $pid did not stop in 30 s" && exit 1; }
    fi
    [ ! -e "$run/bridge" ] || ip link delete "$(cat "$run/bridge")" 2>/dev/null || true
}

case ${1-} in
install) bash "$(dirname "$0")/packages.sh" "${PACKAGES[@]}" ;;
start) start "$2" ;;
stop) stop "$2" ;;
*)
    say "usage: docker.sh install | start RUN | stop RUN"
    exit 2
    ;;
esac
