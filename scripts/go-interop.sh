#!/usr/bin/env bash
# Builds the Go side of the interoperability tests with client-go from Debian's packages, which
# scripts/client-go.sh prepares: a few minutes the first time. Prints the paths of the programs: DEST, which registers and
# discovers services (tests/interop/go, for registry_program_test), DEST-informer, an informer that prints its events
# (tests/interop/informer, for go_informer_test), DEST-election, a candidate for a Lease (tests/interop/election, for
# go_election_test), and DEST-apply, which applies objects (tests/interop/apply, for foreign_clients_test).
#
# usage: scripts/go-interop.sh [DEST]
#
# The default DEST is ${XDG_CACHE_HOME:-~/.cache}/lookout/go-interop, where the tests look for them.
set -euo pipefail
cd "$(dirname "$0")/.."

dest=$(realpath -m "${1:-${XDG_CACHE_HOME:-$HOME/.cache}/lookout/go-interop}")
mkdir -p "$(dirname "$dest")"
scripts/client-go.sh build tests/interop/go "$dest" >&2
scripts/client-go.sh build tests/interop/informer "$dest-informer" >&2
scripts/client-go.sh build tests/interop/election "$dest-election" >&2
scripts/client-go.sh build tests/interop/apply "$dest-apply" >&2
echo "$dest"
echo "$dest-informer"
echo "$dest-election"
echo "$dest-apply"
