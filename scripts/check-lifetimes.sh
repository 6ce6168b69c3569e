#!/usr/bin/env bash
# Checks that code with dangling views does not compile: compiles tests/compile_fail/*.cc with GCC and Clang. A line that ends
# with "// refused" must be an error with both, a line that ends with "// warned" with Clang only, and no other line with
# either. Without these lines, the file must compile.
#
# usage: scripts/check-lifetimes.sh BUILD_DIRECTORY       (with the generated headers; those of CRDs are codegen_test's)
set -euo pipefail
cd "$(dirname "$0")/.."

build=$1
flags=(-std=c++20 -fsyntax-only -Iinclude "-I$build/generated/include"
  "-I$build/tests/api/codegen/lookout-crds/codegen_test")
gcc=(g++ "${flags[@]}" -fmax-errors=0)
clang=(clang++-16 "${flags[@]}" -ferror-limit=0 -Werror=dangling -Werror=dangling-gsl -Werror=return-stack-address)
outcome=0

# check FILE MARKS COMPILER...: MARKS is a regular expression for the marks to expect.
check() {
  local file=$1 marks=$2 wanted got
  shift 2
  wanted=$(grep -nE "// ($marks)\$" "$file" | cut -d: -f1 | sort -u)
  got=$("$@" "$file" 2>&1 | sed -n "s|^$file:\([0-9]*\):[0-9]*: error: .*|\1|p" | sort -u || true)
  local line
  for line in $(comm -23 <(echo "$wanted") <(echo "$got")); do
    echo "$file:$line: $1 takes it:$(sed -n "${line}p" "$file")" >&2
    outcome=1
  done
  for line in $(comm -13 <(echo "$wanted") <(echo "$got")); do
    echo "$file:$line: $1 refuses it:$(sed -n "${line}p" "$file")" >&2
    outcome=1
  done
  # Errors elsewhere, such as in headers, show only here.
  if ! sed -E "s#^.*// ($marks)\$##" "$file" | "$@" -Wno-return-type -x c++ - 2>&1; then
    echo "$file: $1 does not compile it without the marked lines" >&2
    outcome=1
  fi
}

for file in tests/compile_fail/*.cc; do
  grep -qE '// (refused|warned)$' "$file" || {
    echo "$file: marks no line" >&2
    outcome=1
  }
  check "$file" 'refused' "${gcc[@]}"
  check "$file" 'refused|warned' "${clang[@]}"
done
exit "$outcome"
