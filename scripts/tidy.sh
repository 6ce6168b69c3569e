#!/usr/bin/env bash
# Runs clang-tidy on sources; after the deadline, it only records their names.
# usage: scripts/tidy.sh UNTIL LEFT SOURCE...     (UNTIL: seconds since 1970; LEFT: the file for the names)
set -euo pipefail
until=$1
left=$2
shift 2
if (($(date +%s) < until)); then
  exec clang-tidy-16 -p build/tidy --quiet "$@"
fi
printf '%s\n' "$@" >>"$left"
