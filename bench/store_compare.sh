#!/usr/bin/env bash
# Runs the same operations with our store and with client-go's, in turn, and prints the medians in nanoseconds of
# processor time, and the ratio of our figure to client-go's.
#
# usage: bench/store_compare.sh [--rounds N] [--objects "COUNT..."]
#
#   --rounds N   how often each is run (default 5)
#   --objects S  how many objects, one or several counts (default "1000 100000")
#
# $STORE_COMPARE is the program to run (default: that of the preset release, which is built). view_get is a get
# within one cache::ReadView for every 100, many_get one of ReadView::get_many() of 100; client-go's column there is
# its get.
set -euo pipefail
cd "$(dirname "$0")/.."

rounds=5 counts="1000 100000"
while (($#)); do
  case $1 in
    --rounds) rounds=$2 && shift ;;
    --objects) counts=$2 && shift ;;
    *)
      sed -n '2,/^set -/s/^# \{0,1\}//p' "$0"
      exit 2
      ;;
  esac
  shift
done

# shellcheck source=bench/built.sh
source bench/built.sh
ours=${STORE_COMPARE:-$(built store_compare)}
peer=build/peers/client-go
mkdir -p build/peers
scripts/client-go.sh build bench/peers/client-go "$peer" || {
  echo "*** No client-go here: its column stays empty. ***" >&2
  peer=''
}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

median() { sort -g | awk '{all[NR] = $1} END {if (NR > 0) print all[int((NR + 1) / 2)]}'; }
of() { awk -v name="$2" '$1 == name {print $2}' "$1" | median; } # FILE NAME

for count in $counts; do
  "$ours" objects "$count" >"$work/objects"
  : >"$work/ours" && : >"$work/theirs"
  for ((round = 0; round < rounds; ++round)); do
    "$ours" run "$work/objects" >>"$work/ours"
    [[ -z $peer ]] || "$peer" store "$work/objects" >>"$work/theirs"
  done
  printf '%-28s %12s %12s %8s\n' "$count objects" lookout client-go ratio
  # shellcheck disable=SC2013  # names have no spaces
  for name in $(awk '!seen[$1]++ {print $1}' "$work/ours"); do
    mine=$(of "$work/ours" "$name") other=$(of "$work/theirs" "${name#view_}")
    [[ -n $other ]] || other=$(of "$work/theirs" "${name#many_}")
    ratio=$([[ -z $other ]] || awk "BEGIN {printf \"%.2f\", $mine / $other}")
    printf '%-28s %12s %12s %8s\n' "$name" "$mine" "$other" "$ratio"
  done
done
