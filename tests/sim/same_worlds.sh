#!/usr/bin/env bash
# A seed tells one story: in every process, wherever that lies in memory, whatever has run there before, and whether its log is
# printed or not. Runs the worlds of a program several times and compares their digests.
#
# usage: same_worlds.sh PROGRAM SEED [PATTERN]
set -euo pipefail

program=$1 seed=$2 pattern=${3:-*Worlds.*}
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# run NAME FILTER VARIABLE=VALUE...: worlds of the tests that fit.
run() {
  local name=$1 filter=$2
  shift 2
  env -u LOOKOUT_SIM_SEED -u LOOKOUT_SIM_SEEDS LOOKOUT_SIM_DIGESTS="$dir/$name" "$@" "$program" --gtest_brief=1 \
    --gtest_filter="$filter" > "$dir/$name.log" 2>&1 || true
  touch "$dir/$name"
}

# Each seed has a process of its own, and says nothing.
run first "$pattern" LOOKOUT_SIM_SEEDS="$seed-$((seed + 1))"
run second "$pattern" LOOKOUT_SIM_SEEDS="$seed-$((seed + 1))"
# In the program's own process, and printed; all but the first test find what the others have left.
for each in "$seed" $((seed + 1)); do run own "$pattern" LOOKOUT_SIM_SEED="$each"; done

if [[ ! -s $dir/first ]]; then
  echo "$program: no worlds; its output:" && cat "$dir/first.log"
  exit 1
fi
status=0
for other in second own; do
  if ! diff <(sort "$dir/first") <(sort "$dir/$other") > "$dir/diff"; then
    echo "$program: worlds of the run \"$other\" are not those of the first run (test, seed, digest, requests):"
    cat "$dir/diff"
    status=1
  fi
done
exit "$status"
