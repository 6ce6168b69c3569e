#!/usr/bin/env bash
# Checks docs/client-go-conformance.md and docs/apiserver-conformance.md: no row is empty, and every test
# that they name exists, in the file they name and among the tests of a build (which test.sh then runs).
#
# usage: scripts/check-conformance.sh [BUILD [CLIENT-GO [APISERVER]]]
#
#   BUILD      a build with tests; default build/dev
#   CLIENT-GO  a checkout of client-go, or its git directory: that the rows are its tests; "" for none
#   APISERVER  the same of k8s.io/apiserver
set -euo pipefail
cd "$(dirname "$0")/.."

build=${1:-build/dev}
client_go=${2:-}
apiserver=${3:-}
failures=0
fail() {
  echo "$*" >&2
  failures=$((failures + 1))
}

# "suite.name", once each, without the parameters of parameterised tests.
built=$(ctest --test-dir "$build" -N | sed -n 's/^ *Test *#[0-9]*: *//p' |
  sed 's#^[^.]*/\([^./]*\.\)#\1#; s#^\([^./]*\.[^/]*\)/.*#\1#' | sort -u)

# check_table TABLE: its rows and the tests that they name.
check_table() {
  local table=$1 rows named row file test
  # Rows are "| test | what it pins | ours |".
  rows=$(grep '^| *\(Run\|Test\|Benchmark\|Example\|Fuzz\)' "$table")
  while IFS= read -r row; do
    fail "$table: an empty cell: $row"
  done < <(awk -F' *[|] *' 'NF != 5 || $2 == "" || $3 == "" || $4 == ""' <<<"$rows")

  named=$(grep -o 'tests/[a-z0-9_/]*\.cc: [A-Za-z0-9]*\.[A-Za-z0-9]*' <<<"$rows" | sort -u)
  while IFS=' ' read -r file test; do
    file=${file%:}
    if [[ ! -f $file ]]; then
      fail "$table: there is no $file"
    elif ! tr '\n' ' ' <"$file" | grep -q "TEST[_FP]*(${test%.*}, *${test#*.})"; then
      fail "$table: $file has no ${test}"
    elif ! grep -qxF "$test" <<<"$built"; then
      fail "$table: $test is not among the tests of $build"
    fi
  done <<<"$named"
  echo "$table: $(wc -l <<<"$rows") rows, $(wc -l <<<"$named") tests named"
}

# check_complete TABLE CHECKOUT FILES TESTS: the rows are the functions of the checkout's files (a pattern)
# that are tests (a pattern), each under the heading of its file.
check_complete() {
  local table=$1 git="git -C $2" files=$3 tests=$4 theirs ours test
  # "file test", one a line: those of the checkout, and those of the table.
  theirs=$(for file in $($git ls-tree -r HEAD --name-only | grep -E "$files"); do
    $git show "HEAD:$file" | grep -oE "^func ($tests)[A-Za-z0-9_]*\(" |
      sed "s#^func \(.*\)(#$file \1#" || true
  done | sort)
  ours=$(awk -F' *[|] *' -v tests="^($tests)" '/^## /{file = substr($0, 4)} $2 ~ tests {print file, $2}' \
    "$table" | sort)
  while IFS= read -r test; do
    fail "$table: $test is missing"
  done < <(comm -23 <(echo "$theirs") <(echo "$ours") | grep .)
  while IFS= read -r test; do
    fail "$table: $test: there is no such test, or it is here twice"
  done < <(comm -13 <(echo "$theirs") <(echo "$ours") | grep .)
}

check_table docs/client-go-conformance.md
check_table docs/apiserver-conformance.md
if [[ -n $client_go ]]; then
  check_complete docs/client-go-conformance.md "$client_go" \
    '^(tools/cache|tools/pager|util/workqueue|informers|listers|(dynamic|metadata)/[a-z]*(informer|lister))/.*_test\.go$' \
    'Test|Benchmark|Example|Fuzz'
fi
if [[ -n $apiserver ]]; then
  check_complete docs/apiserver-conformance.md "$apiserver" \
    '^pkg/storage/(testing/(store|watcher)_tests\.go|(etcd3|cacher)/[a-z_0-9]*_test\.go)$' \
    'Run|Test|Benchmark'
fi

if ((failures)); then
  echo "$failures failures" >&2
  exit 1
fi
echo "all there"
