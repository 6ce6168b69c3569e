#!/usr/bin/env bash
# Checks that shared libraries export only names of Lookout and Boost, and variables of the standard library
# (cmake/exports.map). Prints all other exports, and fails if there are any.
#
# usage: scripts/check-exports.sh DIRECTORY       (contains liblookout_*.so.*, at any depth)
set -euo pipefail

mapfile -t libraries < <(find "$1" -name 'liblookout_*.so.*' -type f)
((${#libraries[@]})) || {
  echo "$0: no shared libraries in $1" >&2
  exit 2
}
outcome=0
for library in "${libraries[@]}"; do
  exported=$(nm -D --defined-only "$library" | awk '{print $3}')
  grep -q '^_ZN7lookout' <<<"$exported" || {
    echo "$library exports nothing of Lookout" >&2
    outcome=1
  }
  foreign=$(grep -vE '^_Z(T[ISVTC]|T[hvc][^N]*|T[HW]|GV|GR|Z|GVZ)?NK?[RO]?(7lookout|5boost)|^_Z(GV)?Z(NK?)?St' <<<"$exported" || true)
  [[ -z $foreign ]] || {
    echo "$library exports what is not its own:" >&2
    c++filt <<<"$foreign" | head -n 20 >&2
    outcome=1
  }
done
exit "$outcome"
