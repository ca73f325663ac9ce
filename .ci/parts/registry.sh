#!/usr/bin/env bash
# A real OCI registry for tests: installs what is missing; the tests start it themselves.
#
#   registry.sh        install docker-registry, skopeo (pushes images) and htpasswd
set -euo pipefail

say() { printf '[registry] %s\n' "$*" >&2; }

missing=()
for package in docker-registry skopeo apache2-utils; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
        missing+=("$package")
done
if [ ${#missing[@]} -gt 0 ]; then
    say "installing ${missing[*]}"
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq >&2
    # The package would start a registry of its own where the system has an init.
    policy=/usr/sbin/policy-rc.d
    [ -e "$policy" ] || { printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod +x "$policy" && ours=1; }
    apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
    [ -z "${ours-}" ] || rm "$policy"
fi
for program in docker-registry skopeo htpasswd; do
    command -v "$program" >/dev/null || { say "$program is not on PATH" && exit 1; }
done
say "$(docker-registry --version 2>&1 | head -n 1); $(skopeo --version)"
