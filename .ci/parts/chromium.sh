#!/usr/bin/env bash
# A real browser for tests: headless Chromium, and a font for it to write with.
#
#   chromium.sh        install them where they are missing; print the browser's path
set -euo pipefail

bash "$(dirname "$0")/packages.sh" chromium fonts-dejavu-core
command -v chromium
