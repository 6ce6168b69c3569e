#!/usr/bin/env bash
# Tests everything, on a bare Debian 12: installs what it needs, builds, and runs every check and test.
# The quick checks come first. Repeated, it does again only what has changed (and all tests).
#
# usage: scripts/test.sh [STAGE...]
#
#   style    formatting, shell scripts
#   plain    GCC, warnings as errors; all tests, end-to-end ones against real servers included, and that the
#            tests named in docs/*-conformance.md are among them
#   install  cmake --install, and a project of its own that uses it through CMake and pkg-config
#   bench    GCC; instructions and heap bytes of a few small jobs, against bench/guard.json
#   asan     Clang; tests under AddressSanitizer and UndefinedBehaviorSanitizer
#   tsan     Clang; concurrent tests under ThreadSanitizer
#   fuzz     Clang; each fuzzer for a moment (LOOKOUT_FUZZ_SECONDS, default 15)
#   tidy     clang-tidy over every source file
#
# Without a stage: all of them, in this order.
set -euo pipefail
cd "$(dirname "$0")/.."

stages=(style plain install bench asan tsan fuzz tidy)
case ${1:-} in
  -h | --help)
    sed -n '2,/^set -/s/^# \{0,1\}//p' "$0" | sed '$d'
    exit 0
    ;;
esac
(($#)) || set -- "${stages[@]}"

scripts/packages.sh test
# Objects that were compiled before are found again, in this clone or another one.
export CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1

# Reports name functions; suppressions need that, too.
symbolizer=/usr/bin/llvm-symbolizer-16

sources() { git ls-files '*.cc' '*.h'; }

# run_tests PRESET [CTEST-OPTION...]: a test that fails is run once more, by itself. Both outcomes are
# printed; what a sanitizer has found is not forgiven.
run_tests() {
  local preset=$1 log=build/$1/tests.log
  shift
  ctest --preset "$preset" -j "$(nproc)" "$@" 2>&1 | tee "$log" && return
  local found='ERROR: (Address|Leak)Sanitizer|WARNING: ThreadSanitizer|: runtime error: '
  if grep -Eq "$found" "$log"; then
    echo "*** A sanitizer has found something: ***"
    grep -E -A 30 "$found" "$log"
    return 1
  fi
  echo "*** What has failed, once more: ***"
  ctest --preset "$preset" --rerun-failed "$@"
}

stage_style() {
  sources | xargs -P "$(nproc)" -n 20 clang-format-16 --dry-run -Werror
  git ls-files '*.sh' | xargs shellcheck
}

stage_plain() {
  cmake --preset dev >/dev/null
  cmake --build --preset dev
  # The real API server that end-to-end tests run against; they say so loudly if it cannot be had.
  LOOKOUT_KUBE_APISERVER=$(scripts/build-kube-apiserver.sh) || {
    echo "*** No kube-apiserver could be built: the tests against a real server are skipped. ***"
    LOOKOUT_KUBE_APISERVER=
  }
  export LOOKOUT_KUBE_APISERVER
  scripts/check-conformance.sh build/dev
  run_tests dev
}

stage_install() {
  local prefix=build/installed
  cmake --preset dev >/dev/null
  cmake --build --preset dev
  rm -rf "$prefix" build/consumer
  cmake --install build/dev --prefix "$prefix" >/dev/null
  cmake -S tests/install -B build/consumer -G Ninja -DCMAKE_PREFIX_PATH="$PWD/$prefix" >/dev/null
  cmake --build build/consumer
  build/consumer/consumer
  local flags
  read -ra flags <<<"$(PKG_CONFIG_PATH=$prefix/lib/pkgconfig pkg-config --cflags --libs lookout)"
  g++ tests/install/consumer.cc "${flags[@]}" -o build/consumer/with-pkg-config
  build/consumer/with-pkg-config
}

stage_bench() { bench/guard.sh; }

stage_asan() {
  cmake --preset asan >/dev/null
  cmake --build --preset asan
  ASAN_OPTIONS="detect_stack_use_after_return=1 external_symbolizer_path=$symbolizer" \
    UBSAN_OPTIONS=print_stacktrace=1 \
    run_tests asan -LE e2e
}

stage_tsan() {
  cmake --preset tsan >/dev/null
  cmake --build --preset tsan
  TSAN_OPTIONS="halt_on_error=1 external_symbolizer_path=$symbolizer" run_tests tsan
}

stage_fuzz() { scripts/fuzz.sh "${LOOKOUT_FUZZ_SECONDS:-15}"; }

stage_tidy() {
  # What is generated must be there to be included; nothing else has to be built.
  cmake --preset tidy >/dev/null
  cmake --build --preset tidy
  sources | grep '\.cc$' | grep -v -e '^tests/' | xargs -P "$(nproc)" -n 4 clang-tidy-16 -p build/tidy --quiet 2>&1 |
    { grep -v -e 'warnings generated' -e 'Suppressed' -e 'Use -header-filter' || true; }
  return "${PIPESTATUS[0]}"
}

for stage in "$@"; do
  declare -F "stage_$stage" >/dev/null || {
    echo "$0: no stage \"$stage\"; there are: ${stages[*]}" >&2
    exit 2
  }
  echo "=== $stage"
  SECONDS=0
  "stage_$stage"
  echo "=== $stage: ok, $SECONDS s"
done
