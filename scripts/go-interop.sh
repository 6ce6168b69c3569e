#!/usr/bin/env bash
# Builds the Go side of the interoperability tests (tests/interop/go) with client-go from Debian's
# packages, which scripts/client-go.sh prepares: some minutes the first time. Prints where the program is;
# registry_program_test finds it there.
#
# usage: scripts/go-interop.sh [DEST]
#
# Without DEST it goes to ${XDG_CACHE_HOME:-~/.cache}/lookout/go-interop.
set -euo pipefail
cd "$(dirname "$0")/.."

dest=$(realpath -m "${1:-${XDG_CACHE_HOME:-$HOME/.cache}/lookout/go-interop}")
mkdir -p "$(dirname "$dest")"
scripts/client-go.sh build tests/interop/go "$dest" >&2
echo "$dest"
