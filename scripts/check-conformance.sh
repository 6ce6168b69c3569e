#!/usr/bin/env bash
# Checks docs/client-go-conformance.md: no row is empty, and every test that it names exists, in the
# file it names and among the tests of a build (which test.sh then runs).
#
# usage: scripts/check-conformance.sh [BUILD [CLIENT-GO]]
#
#   BUILD      a build with tests; default build/dev
#   CLIENT-GO  a checkout of client-go, or its git directory: that no test of it is missing
set -euo pipefail
cd "$(dirname "$0")/.."

table=docs/client-go-conformance.md
build=${1:-build/dev}
client_go=${2:-}
failures=0
fail() {
  echo "$table: $*" >&2
  failures=$((failures + 1))
}

# Rows are "| test | what it pins | ours |".
rows=$(grep '^| *\(Test\|Benchmark\|Example\|Fuzz\)' "$table")
while IFS= read -r row; do
  fail "an empty cell: $row"
done < <(awk -F' *[|] *' 'NF != 5 || $2 == "" || $3 == "" || $4 == ""' <<<"$rows")

# "suite.name", once each, without the parameters of parameterised tests.
built=$(ctest --test-dir "$build" -N | sed -n 's/^ *Test *#[0-9]*: *//p' |
  sed 's#^[^.]*/\([^./]*\.\)#\1#; s#^\([^./]*\.[^/]*\)/.*#\1#' | sort -u)
named=$(grep -o 'tests/[a-z_/]*\.cc: [A-Za-z]*\.[A-Za-z]*' <<<"$rows" | sort -u)
while IFS=' ' read -r file test; do
  file=${file%:}
  if [[ ! -f $file ]]; then
    fail "there is no $file"
  elif ! tr '\n' ' ' <"$file" | grep -q "TEST[_FP]*(${test%.*}, *${test#*.})"; then
    fail "$file has no ${test}"
  elif ! grep -qxF "$test" <<<"$built"; then
    fail "$test is not among the tests of $build"
  fi
done <<<"$named"

if [[ -n $client_go ]]; then
  git="git -C $client_go"
  for file in $($git ls-tree -r HEAD --name-only | grep -E '^(tools/cache|tools/pager|util/workqueue|informers|(dynamic|metadata)/[a-z]*(informer|lister))/.*_test\.go$'); do
    while IFS= read -r test; do
      awk -v file="## $file" -v test="| $test |" \
        '/^## /{in_file = $0 == file} in_file && index($0, test) == 1 {found = 1} END {exit !found}' \
        "$table" || fail "$file: $test is missing"
    done < <($git show "HEAD:$file" | grep -oE '^func (Test|Benchmark|Example|Fuzz)[A-Za-z0-9_]*\(' |
      sed 's/^func //; s/($//')
  done
fi

if ((failures)); then
  echo "$failures failures" >&2
  exit 1
fi
echo "$(wc -l <<<"$rows") rows, $(wc -l <<<"$named") tests named: all there"
