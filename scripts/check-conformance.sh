#!/usr/bin/env bash
# Checks the tables of upstream tests and facts, docs/*-conformance.md, docs/conformance/ and docs/controller-facts.md: no
# row is empty, and every test that they name exists, in the named file and, where there is a build, among its tests (which
# test.sh then runs).
#
# usage: scripts/check-conformance.sh [BUILD [CLIENT-GO [APISERVER [CONTROLLER-RUNTIME [KUBE-RS]]]]]
#
#   BUILD      a build with tests, such as build/dev; "" for none: only reads the sources
#   CLIENT-GO  a checkout of client-go, or its git directory: also checks that the rows are its tests; "" for none
#   APISERVER  the same for k8s.io/apiserver
#   CONTROLLER-RUNTIME  the same for sigs.k8s.io/controller-runtime
#   KUBE-RS  the same for github.com/kube-rs/kube
set -euo pipefail
cd "$(dirname "$0")/.."

build=${1:-}
client_go=${2:-}
apiserver=${3:-}
controller_runtime=${4:-}
kube_rs=${5:-}
failures=0
fail() {
  echo "$*" >&2
  failures=$((failures + 1))
}

# "suite.name", once each, without the parameters of parameterised tests.
built=''
tests_of() {
  local program
  ctest --test-dir "$1" -N | sed -n 's/^ *Test *#[0-9]*: *//p'
  # Programs that CTest runs in parts.
  ctest --test-dir "$1" --show-only=json-v1 | jq -r '.tests[] | select(.name | endswith("_test.0")) | .command[1]' |
    while IFS= read -r program; do
      "$program" --gtest_list_tests | awk '/^ / { print suite $1; next } { suite = $1 }'
    done
}
[[ -z $build ]] || built=$(tests_of "$build" |
  sed 's#^[^.]*/\([^./]*\.\)#\1#; s#^\([^./]*\.[^/]*\)/.*#\1#' | sort -u)

# check_table TABLE [ROWS]: checks the rows and the tests that they name. ROWS is a pattern for the rows' tests.
check_table() {
  local table=$1 tests=${2:-'\(Run\|Test\|Benchmark\|Example\|Fuzz\)'} rows named row file test
  # Rows are "| test | behaviour | Lookout's test |".
  rows=$(grep "^| *$tests" "$table" | grep -v '^| test |')
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
    elif [[ -n $build ]] && ! grep -qxF "$test" <<<"$built"; then
      fail "$table: $test is not among the tests of $build"
    fi
  done <<<"$named"
  echo "$table: $(wc -l <<<"$rows") rows, $(wc -l <<<"$named") tests named"
}

# check_same TABLE THEIRS OURS: the tests of a checkout equal the rows; both sorted, one per line.
check_same() {
  local table=$1 theirs=$2 ours=$3 test
  while IFS= read -r test; do
    fail "$table: $test is missing"
  done < <(comm -23 <(echo "$theirs") <(echo "$ours") | grep .)
  while IFS= read -r test; do
    fail "$table: $test: there is no such test, or it is here twice"
  done < <(comm -13 <(echo "$theirs") <(echo "$ours") | grep .)
}

# check_complete TABLE CHECKOUT FILES TESTS: the rows are the functions of the checkout's files (a pattern)
# that are tests (a pattern), each under the heading of its file.
check_complete() {
  local table=$1 git="git -C $2" files=$3 tests=$4 theirs ours
  # "file test", one per line: those of the checkout, and those of the table.
  theirs=$(for file in $($git ls-tree -r HEAD --name-only | grep -E "$files"); do
    $git show "HEAD:$file" | grep -oE "^func ($tests)[A-Za-z0-9_]*\(" |
      sed "s#^func \(.*\)(#$file \1#" || true
  done | sort)
  ours=$(awk -F' *[|] *' -v tests="^($tests)" '/^## /{file = substr($0, 4)} $2 ~ tests {print file, $2}' \
    "$table" | sort)
  check_same "$table" "$theirs" "$ours"
}

# check_rust TABLE CHECKOUT FILES: the rows are the test functions of the checkout's files (a pattern).
check_rust() {
  local table=$1 git="git -C $2" files=$3 theirs ours
  theirs=$(for file in $($git ls-tree -r HEAD --name-only | grep -E "$files"); do
    $git show "HEAD:$file" | awk -v file="$file" '
      /^ *#\[(tokio::)?test/ {is_test = 1}
      is_test && match($0, /fn [a-z0-9_]+/) {print file, substr($0, RSTART + 3, RLENGTH - 3); is_test = 0}'
  done | sort)
  ours=$(awk -F' *[|] *' '/^## /{file = substr($0, 4)} $2 ~ /_/ {print file, $2}' "$table" | sort)
  check_same "$table" "$theirs" "$ours"
}

# check_ginkgo TABLE CHECKOUT FILE...: the rows under the heading of each file are its tests: those of Go's testing
# package by their names, those of Ginkgo by the texts of their containers (the outermost aside) and their own. A text
# that is made by a call is named by its format, one that is a variable by the variable.
check_ginkgo() {
  local table=$1 checkout=$2 problem
  shift 2
  while IFS= read -r problem; do
    fail "$table: $problem"
  done < <(python3 - "$table" "$checkout" "$@" <<'PYTHON'
import collections, re, subprocess, sys

table, checkout, *files = sys.argv[1:]
ours, file = {}, None
for line in open(table, encoding="utf-8"):
    if line.startswith("## "):
        file = line[3:].strip()
    elif line.startswith("| ") and not line.startswith("| test |"):
        ours.setdefault(file, []).append(line.split(" | ")[0][2:].strip())
for file in files:
    text = subprocess.run(["git", "-C", checkout, "show", "HEAD:" + file], check=True, capture_output=True,
                          text=True).stdout
    theirs, containers = [], []
    for line in text.splitlines():
        found = re.match(r"func ((?:Test|Example|Benchmark|Fuzz)\w*)\(", line)
        if found:
            theirs.append(found[1])
        if line.startswith("func "):
            containers = []
        found = re.match(r"(\t*)(?:var _ = )?[FPX]?(DescribeTable|Describe|Context|When|It|Specify|Entry)\((?:fmt\.Sprintf\()?"
                         r'("(?:[^"\\]|\\.)*"|`[^`]*`|[\w.]+)', line)
        if not found:
            continue
        depth, kind, name = len(found[1]), found[2], found[3].strip('"`').strip().replace("|", "/")
        containers = [each for each in containers if each[0] < depth]
        if kind in ("It", "Specify", "Entry"):
            theirs.append(": ".join([each for _, each in containers[1:]] + [name]))
        else:
            containers.append((depth, name))
    theirs, rows = collections.Counter(theirs), collections.Counter(ours.get(file, []))
    for test in sorted(theirs - rows):
        print(f"{file}: {test} is missing")
    for test in sorted(rows - theirs):
        print(f"{file}: {test}: there is no such test, or it is here too often")
PYTHON
  )
}

check_table docs/client-go-conformance.md
check_table docs/apiserver-conformance.md
check_table docs/controller-conformance.md '[A-Za-z]'
for table in docs/conformance/*.md; do
  check_table "$table" '[A-Za-z]'
done
check_table docs/kube-rs-conformance.md '[a-z]*_'
check_table docs/controller-facts.md '[A-Z/]'
if [[ -n $client_go ]]; then
  check_complete docs/client-go-conformance.md "$client_go" \
    '^(tools/(cache|events|leaderelection|pager|record|watch)|util/(retry|workqueue)|informers|listers|(dynamic|metadata)/[a-z]*(informer|lister))/.*_test\.go$' \
    'Test|Benchmark|Example|Fuzz'
fi
if [[ -n $controller_runtime ]]; then
  controller_files=$(git -C "$controller_runtime" ls-tree -r HEAD --name-only |
    grep -E '^pkg/((controller/controllerutil|finalizer|certwatcher|webhook(/admission|/conversion)?)/[^/]*|builder/(example_)?webhook)_test\.go$')
  # shellcheck disable=SC2086  # one argument for each file
  check_ginkgo docs/controller-conformance.md "$controller_runtime" $controller_files

  # check_tests TABLE FILES: the table has all tests of the files (a pattern).
  check_tests() {
    local files
    files=$(git -C "$controller_runtime" ls-tree -r HEAD --name-only | grep -E "^pkg/($2)_test\.go$")
    # shellcheck disable=SC2086  # one argument for each file
    check_ginkgo "docs/conformance/controller-runtime-$1.md" "$controller_runtime" $files
  }
  # The packages' folders, one pattern.
  own='handler|internal/(controller|field/selector|metrics|source)|predicate|reconcile|source'
  check_tests controllers "builder/(builder_suite|controller|example)|(controller|controller/priorityqueue|$own)/[a-z_]*"
  own='cluster|healthz|internal/(recorder|syncs)|manager(/internal/integration|/signals)?|metrics(/filters)?'
  check_tests manager "($own|recorder|scheme)/[a-z_]*"
  check_tests cache "cache(/internal)?/[a-z_]*"
  own='client(_suite)?|config/[a-z_]*|dryrun|example|fieldowner|fieldvalidation|interceptor/[a-z_]*|namespaced_client'
  check_tests client "client/(apiutil/[a-z_]*|$own|options|patch|watch)"
  check_tests fake "client/fake/[a-z]*"
fi
if [[ -n $kube_rs ]]; then
  check_rust docs/kube-rs-conformance.md "$kube_rs" '^kube-runtime/src/.*\.rs$|^kube/src/mock_tests\.rs$'
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
