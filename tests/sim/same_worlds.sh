#!/usr/bin/env bash
# A seed determines a run: in every process, at any memory addresses, after any earlier runs in the process, whether its log is
# printed or not, and in every build. Runs the worlds of a program twice, compares their digests, stores them in
# BUILD/worlds/, and compares them with those of the other builds beside it (BUILD/../*/worlds/) for the same sources.
#
# usage: same_worlds.sh PROGRAM SEEDS BUILD [--once]
#
#   SEEDS   the first seed and the last: 73-74
#   --once  only one run, for the comparison with other builds
set -euo pipefail

program=$1 seeds=$2 build=$3 once=${4:-}
pattern='*Worlds.*'
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# run NAME VARIABLE=VALUE...: the worlds, into a file of digests.
run() {
  local name=$1
  shift
  env -u LOOKOUT_SIM_SEED -u LOOKOUT_SIM_SEEDS LOOKOUT_SIM_DIGESTS="$dir/$name" "$@" "$program" --gtest_brief=1 \
    --gtest_filter="$pattern" > "$dir/$name.log" 2>&1 || true
  touch "$dir/$name"
}

status=0
# same A B WHAT: compares two files of digests.
same() {
  if ! diff <(sort "$1") <(sort "$2") > "$dir/diff"; then
    echo "$program: worlds of $3 are not the same (test, seed, digest, requests):"
    cat "$dir/diff"
    status=1
  fi
}

# common A B: the lines of A whose seeds (the second word) are in B.
common() { awk 'NR == FNR { seeds[$2]; next } $2 in seeds' "$2" "$1"; }

# sources: a digest of the program's sources; empty outside of a checkout.
sources() {
  local head
  head=$(git -C "$(dirname "$0")" rev-parse HEAD 2> /dev/null) || return 0
  echo "$head $(git -C "$(dirname "$0")" diff HEAD 2> /dev/null | sha256sum)"
}

# Each seed in its own process, without a log.
run first LOOKOUT_SIM_SEEDS="$seeds"
if [[ ! -s $dir/first ]]; then
  echo "$program: no worlds; its output:" && cat "$dir/first.log"
  exit 1
fi
if [[ $once != --once ]]; then
  # In the program's own process, with a log; all tests but the first run in a used process.
  for ((seed = ${seeds%-*}; seed <= ${seeds#*-}; ++seed)); do run own LOOKOUT_SIM_SEED="$seed"; done
  same "$dir/first" "$dir/own" "a process that has forked and one that has not"
fi

name=$(basename "$program")
sources > "$dir/sources"
mkdir -p "$build/worlds"
cp "$dir/sources" "$build/worlds/$name.sources"
cp "$dir/first" "$build/worlds/$name.digests"
for other in "$build"/../*/worlds/"$name.digests"; do
  if [[ $other -ef $build/worlds/$name.digests ]] || ! cmp -s "$dir/sources" "${other%.digests}.sources"; then continue; fi
  # Builds may have run different seeds.
  common "$dir/first" "$other" > "$dir/ours"
  common "$other" "$dir/first" > "$dir/theirs"
  [[ ! -s $dir/sources ]] || same "$dir/ours" "$dir/theirs" "this build and of $(dirname "$(dirname "$other")")"
done
exit "$status"
