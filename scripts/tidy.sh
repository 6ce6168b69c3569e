#!/usr/bin/env bash
# Runs clang-tidy on sources; on tests only the compiler (and one check, because clang-tidy demands one). After the deadline, it
# only records their names.
# usage: scripts/tidy.sh UNTIL LEFT SOURCE...     (UNTIL: seconds since 1970; LEFT: the file for the names)
set -euo pipefail
until=$1
left=$2
shift 2
(($(date +%s) < until)) || {
  printf '%s\n' "$@" >>"$left"
  exit
}
sources=() tests=()
for source in "$@"; do
  case $source in
    tests/* | examples/*/tests/*) tests+=("$source") ;;
    *) sources+=("$source") ;;
  esac
done
outcome=0
((${#sources[@]} == 0)) || clang-tidy-16 -p build/tidy --quiet "${sources[@]}" || outcome=1
((${#tests[@]} == 0)) || clang-tidy-16 -p build/tidy --quiet --checks='-*,clang-diagnostic-*,misc-definitions-in-headers' "${tests[@]}" || outcome=1
exit "$outcome"
