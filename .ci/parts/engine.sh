# Read by the scripts that start a Docker Engine: does one answer at an address, or will it soon?

answers() { timeout 10 docker --host "$1" info >/dev/null 2>&1; }

wait_for() {
    for _ in $(seq 100); do
        answers "$1" && return
        sleep 0.3
    done
    return 1
}
