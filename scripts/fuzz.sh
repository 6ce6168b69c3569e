#!/usr/bin/env bash
# Runs the fuzzers for some time, from their seed corpora. Inputs that crash are kept in build/asan/fuzz.
# usage: scripts/fuzz.sh [SECONDS EACH, default 20] [NAME...]
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=${1:-20}
shift || true
cmake --preset asan >/dev/null
cmake --build --preset asan --target fuzzers

if (($#)); then
  names=("$@")
else
  names=()
  for program in build/asan/tests/fuzz/*_fuzzer; do
    name=$(basename "$program")
    names+=("${name%_fuzzer}")
  done
fi

mkdir -p build/asan/fuzz
# One per processor at a time.
run() {
  local name=$1 corpus
  corpus=$(mktemp -d)
  if ! build/asan/tests/fuzz/"${name}"_fuzzer "$corpus" tests/fuzz/corpus/"$name" \
    -max_total_time="$2" -timeout=10 -rss_limit_mb=4096 -print_final_stats=1 \
    -artifact_prefix="build/asan/fuzz/$name-" >"build/asan/fuzz/$name.log" 2>&1; then
    echo "FAILED: $name"
    tail -40 "build/asan/fuzz/$name.log"
    return 1
  fi
  echo "ok: $name, $(sed -n 's/^stat::number_of_executed_units: *//p' "build/asan/fuzz/$name.log") inputs"
  rm -rf "$corpus"
}
export -f run
# shellcheck disable=SC2016  # the inner shell expands them
printf '%s\n' "${names[@]}" | xargs -P "$(nproc)" -I{} bash -c 'run "$1" "$2"' _ {} "$seconds"
