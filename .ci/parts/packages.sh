#!/usr/bin/env bash
# Install Debian packages where they are missing; starts no service.
#
#   packages.sh NAME...
set -euo pipefail

missing=()
for package in "$@"; do
    dpkg-query -W -f '${Status}' "$package" 2>/dev/null | grep -q 'ok installed' ||
        missing+=("$package")
done
[ ${#missing[@]} -gt 0 ] || exit 0
printf '[packages] installing %s\n' "${missing[*]}" >&2
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq >&2
# Some packages start what they bring where the system has an init.
policy=/usr/sbin/policy-rc.d
[ -e "$policy" ] || { printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod +x "$policy" && ours=1; }
apt-get install -y -qq --no-install-recommends "${missing[@]}" >&2
[ -z "${ours-}" ] || rm "$policy"
