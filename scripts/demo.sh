#!/usr/bin/env bash
# A demo on a bare Debian 12: installs the dependencies, builds Lookout, and runs `lookout demo` with the embedded API server.
# Arguments are passed to `lookout demo`; without a terminal it ends after 30 s.
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/packages.sh build
cmake --preset release >/dev/null
cmake --build --preset release --target lookout-cmd
if (($# == 0)) && [[ ! -t 1 ]]; then
  set -- --for 30s
fi
exec build/release/cmd/lookout demo "$@"
