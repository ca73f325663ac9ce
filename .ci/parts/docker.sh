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
# own. Where an engine already answers, `start` uses that one and leaves everything in it alone:
# two engines in one network namespace overwrite each other's firewall rules.
set -euo pipefail

CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/sparkrecipes-ci
PACKAGES=(docker.io busybox-static iptables iproute2)

say() { printf '[docker] %s\n' "$*" >&2; }

answers() { timeout 10 docker --host "$1" info >/dev/null 2>&1; }

wait_for() {
    for _ in $(seq 100); do
        answers "$1" && return
        sleep 0.3
    done
    return 1
}

remove_leftovers() {
    docker --host "$1" ps --all --quiet |
        xargs --no-run-if-empty docker --host "$1" rm --force --volumes >/dev/null
    docker --host "$1" volume ls --quiet |
        xargs --no-run-if-empty docker --host "$1" volume rm >/dev/null
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
    dockerd --host "$host" --data-root "$CACHE/docker" --exec-root "$run/exec" \
        --pidfile "$run/dockerd.pid" </dev/null >"$run/dockerd.log" 2>&1 &
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
    local pidfile=$1/dockerd.pid pid
    [ -e "$pidfile" ] || return 0
    pid=$(cat "$pidfile")
    kill "$pid" 2>/dev/null || return 0
    for _ in $(seq 100); do
        kill -0 "$pid" 2>/dev/null || return 0
        sleep 0.3
    done
    say "engine $pid did not stop in 30 s"
    exit 1
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
