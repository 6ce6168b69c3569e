#!/usr/bin/env bash
# Runs our micro benchmarks and client-go's own of the same name, and prints them side by side (nanoseconds of
# wall time; an idle machine is needed).
#
# usage: bench/micro.sh [--time SECONDS]        how long each is run (default 0.5)
set -euo pipefail
cd "$(dirname "$0")/.."

seconds=0.5
case ${1:-} in
  --time) seconds=$2 ;;
  ?*)
    sed -n '2,/^set -/s/^# \{0,1\}//p' "$0"
    exit 2
    ;;
esac

# shellcheck source=bench/built.sh
source bench/built.sh
ours=${LOOKOUT_BENCH:-$(built lookout_bench)}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# (Not as CSV, which does not support benchmarks with different counters.)
"$ours" --benchmark_min_time="$seconds" --benchmark_format=json \
  --benchmark_filter='^(Lister_Match|Listener/batch:1/handlers:1/|Indexer$|AddWithSlow|Queue$|DelayingQueue|ReflectorResyncChanMany|SharedIndexInformer/podCount:(10000|160000)/readers:0)' \
  2>/dev/null >"$work/ours.json"
jq -r '.benchmarks[] | select(.error_occurred != true) |
  "\(.name | sub("/.*"; "")) \(.real_time * {"ns": 1, "us": 1e3, "ms": 1e6}[.time_unit] | round)"' "$work/ours.json" |
  awk '!($1 in seen) {seen[$1]; print}' | sort >"$work/ours"

if where=$(scripts/client-go.sh prepare); then
  eval "$(scripts/client-go.sh env)"
  for package in tools/cache util/workqueue; do
    (cd "$where/gopath/src/k8s.io/client-go/$package" && go test -run '^$' -benchtime "${seconds}s" \
      -bench '^Benchmark(Lister_Match.*|Listener|Indexer|AddWithSlowHandlers|ReflectorResyncChanMany|Queue|DelayingQueue_AddAfter)$' .) 2>&1
  done | sed -n 's/^Benchmark\([A-Za-z0-9_]*\)[^ \t]*[ \t]*[0-9]*[ \t]*\([0-9.]*\) ns\/op.*/\1 \2/p' |
    awk '{sub(/-[0-9]*$/, "", $1); t[$1] = $2} END {for (n in t) print n, t[n]}' | sort >"$work/theirs"
else
  : >"$work/theirs"
fi

printf '%-34s %14s %14s %10s\n' benchmark lookout client-go ratio
join -a 1 "$work/ours" "$work/theirs" | while read -r name mine other; do
  ratio=$([[ -z $other ]] || awk "BEGIN {printf \"%.3f\", $mine / $other}")
  printf '%-34s %14s %14s %10s\n' "$name" "$mine" "${other:-}" "$ratio"
done
