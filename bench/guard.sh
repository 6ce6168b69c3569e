#!/usr/bin/env bash
# Counts instructions (callgrind) and heap bytes of a few small fixed jobs, and fails if one exceeds its figure in
# bench/guard.json by more than 10 %. Figures are per item: a decoded pod, an update of the store ...
#
# usage: bench/guard.sh [--update]
#
#   --update  writes the new figures to bench/guard.json, after a change that reduces costs or is worth them. Commit the file
#             with that change.
#
# Uses the program of the preset dev; compilers other than GCC 12 give other figures.
set -euo pipefail
cd "$(dirname "$0")/.."

build=${LOOKOUT_GUARD_BUILD:-}
if [[ -z $build ]]; then
  cmake --preset dev >/dev/null
  cmake --build --preset dev --target lookout_guard >/dev/null
  build=build/dev
fi
guard=$build/bench/lookout_guard

# The functions that are counted; everything else, such as creating the input, is excluded.
measured='lookout::bench::(anonymous namespace)::measured(*'
listener='lookout::informer::detail::Listener::'

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

instructions() { # JOB FUNCTION... -> instructions an item
  local job=$1 toggles=() items total
  shift
  for function in "$@"; do toggles+=("--toggle-collect=$function"); done
  items=$(valgrind --tool=callgrind --callgrind-out-file=/dev/null --collect-atstart=no "${toggles[@]}" \
    "$guard" "$job" 2>"$work/$job.log")
  total=$(sed -n 's/.*Collected : *\([0-9]*\).*/\1/p' "$work/$job.log")
  echo "${job}_instructions $((total / items))"
}

{
  instructions decode "$measured" &
  instructions decode_list "$measured" &
  wait
  instructions decode_protobuf "$measured" &
  instructions decode_protobuf_unmanaged "$measured" &
  wait
  instructions encode_protobuf "$measured" &
  instructions store_update "$measured" &
  wait
  instructions list "$measured" &
  instructions read_fields "$measured" &
  wait
  instructions notification "${listener}push(*" "${listener}drain()"
  "$guard" heap
} >"$work/found"

if [[ ${1:-} == --update ]]; then
  jq -Rn '[inputs | split(" ") | {(.[0]): (.[1] | tonumber)}] | add' <"$work/found" >bench/guard.json
  cat bench/guard.json
  exit 0
fi

failed=0
while read -r name value; do
  committed=$(jq --arg name "$name" '.[$name] // 0' bench/guard.json)
  change=$((committed > 0 ? (value - committed) * 100 / committed : 100))
  printf '%-28s %8d  committed %8d  %+d %%\n' "$name" "$value" "$committed" "$change"
  ((value * 10 <= committed * 11)) || failed=1
done <"$work/found"
if ((failed)); then
  echo "$0: something costs over 10 % more than bench/guard.json says. If it is worth that: bench/guard.sh --update" >&2
  exit 1
fi
