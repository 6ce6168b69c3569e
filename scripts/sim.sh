#!/usr/bin/env bash
# Runs the simulated worlds of Lookout's own parts and of the examples for many seeds, with `lookout sim`. Builds them first.
# Fails if a world fails; the report says how to repeat it.
#
# usage: scripts/sim.sh [--for TIME] [--seeds N|A-B] [--jobs N] [--keep-going] [PATTERN...]
#
#   --for TIME    the total time, such as 10m or 1h, divided among the programs (default: 10m, or no limit with --seeds)
#   --seeds       the seeds of each test: 10000, 5001-6000, 5001-
#   PATTERN       the tests to run, such as 'ElectionWorlds.*' (default: all suites that end with Worlds)
#
# LOOKOUT_SIM_BUILD names a build directory to use instead of build/dev; it is not rebuilt.
set -euo pipefail
cd "$(dirname "$0")/.."

usage() { sed -n '2,/^set -/s/^# \{0,1\}//p' "$0"; }

# seconds TIME: prints the seconds of 90s, 10m, 1h30m.
seconds() {
  local left=$1 all=0
  while [[ $left =~ ^([0-9]+)([smh])(.*)$ ]]; do
    left=${BASH_REMATCH[3]}
    case ${BASH_REMATCH[2]} in
      s) all=$((all + BASH_REMATCH[1])) ;;
      m) all=$((all + 60 * BASH_REMATCH[1])) ;;
      h) all=$((all + 3600 * BASH_REMATCH[1])) ;;
    esac
  done
  if [[ -n $left ]] || ((all == 0)); then
    echo "$0: \"$1\" is not a time such as 10m or 1h" >&2
    exit 2
  fi
  echo "$all"
}

time='' patterns=() flags=()
while (($#)); do
  case $1 in
    -h | --help)
      usage
      exit 0
      ;;
    --for | --seeds | --jobs)
      (($# > 1)) || {
        echo "$0: $1 needs a value" >&2
        exit 2
      }
      if [[ $1 == --for ]]; then time=$2; else flags+=("$1" "$2"); fi
      shift
      ;;
    --keep-going) flags+=("$1") ;;
    -*)
      usage >&2
      exit 2
      ;;
    *) patterns+=("$1") ;;
  esac
  shift
done
((${#patterns[@]})) || patterns=('*Worlds.*')
filter=$(IFS=: && echo "${patterns[*]}")
[[ -n $time || " ${flags[*]} " == *' --seeds '* ]] || time=10m
[[ -z $time ]] || time=$(seconds "$time")

# Programs whose tests are worlds are named *worlds_test.
build=${LOOKOUT_SIM_BUILD:-}
if [[ -z $build ]]; then
  build=build/dev
  cmake --preset dev >/dev/null
  mapfile -t targets < <(ninja -C "$build" -t targets all | sed -n 's,^\(.*/\)\{0,1\}\([a-z_]*_worlds_test\): .*EXECUTABLE.*,\2,p' | sort -u)
  cmake --build "$build" --target lookout-cmd "${targets[@]}"
fi

programs=()
while IFS= read -r program; do
  if "$program" --gtest_list_tests --gtest_filter="$filter" | grep '^ ' >/dev/null; then programs+=("$program"); fi
done < <(find "$build/tests" -type f -name '*_worlds_test' -perm -u+x | sort)
((${#programs[@]})) || {
  echo "$0: no test passes the filter $filter" >&2
  exit 1
}
[[ -z $time ]] || flags+=(--for "$((time / ${#programs[@]} + 1))s")

outcome=0
for program in "${programs[@]}"; do
  echo "=== $(basename "$program")"
  "$build/cmd/lookout" sim "$program" --filter "$filter" "${flags[@]}" || outcome=1
done
exit "$outcome"
