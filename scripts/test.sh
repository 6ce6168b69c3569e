#!/usr/bin/env bash
# Tests everything on a bare Debian 12: installs the dependencies, builds, and runs all checks and tests, quick checks first.
# Later runs rebuild only what has changed (and run all tests).
#
# usage: scripts/test.sh [STAGE...]
#
#   style    formatting, shell scripts, the architecture (includes only point to lower layers), local names that hide others,
#            uses of co_await that GCC 12 miscompiles, unbounded waits in tests, the code in the docs, and the tests that
#            docs/*-conformance.md name
#   plain    GCC, warnings as errors: everything but the unit tests; tests of the programs, long tests, and end-to-end tests
#            against real servers
#   bench    GCC; compares instructions and heap bytes of a few small jobs with bench/guard.json
#   asan     Clang; unit tests, tests of the programs and long tests under AddressSanitizer and UndefinedBehaviorSanitizer
#   tsan     Clang; unit tests under ThreadSanitizer
#   fuzz     Clang; each fuzzer for a short time (LOOKOUT_FUZZ_SECONDS, default 8)
#   unit     GCC; unit tests
#   install  cmake --install and the Debian packages; separate projects that use each component of both through CMake and
#            pkg-config; the project of `lookout new` with its tests; a project that includes Lookout as a subproject
#   tidy     clang-tidy on every source file, until 40 minutes after the start; the tests that changed in the last 20 commits are
#            only compiled. Each file is compiled on its own, which detects files that compile only in unity builds
#
# The default is all stages, in this order; at every other commit, tsan comes before bench, and asan and fuzz come after install.
# They end within an hour, so a slow machine runs the unit tests only under the first sanitizer, and skips stages that would not
# end in time, with a message. Tests wait more than they compute, so the builds for the sanitizers and tidy start in the background
# with the lowest priority once plain has built; but not if that took 30 minutes, because they would not end in time. After 47
# minutes, an unfinished build for a sanitizer is stopped, and the programs that it has built are tested. No test starts after 53
# minutes.
set -euo pipefail
cd "$(dirname "$0")/.."

# A slow machine has time only for the first sanitizer, so the two take turns with the commits.
stages=(style plain bench asan fuzz unit install tsan tidy) first_sanitizer=asan
(($(git rev-list --count HEAD 2>/dev/null || echo 0) % 2 == 0)) || {
  stages=(style plain bench tsan unit install asan fuzz tidy) first_sanitizer=tsan
}
case ${1:-} in
  -h | --help)
    sed -n '2,/^set -/s/^# \{0,1\}//p' "$0"
    exit 0
    ;;
esac
all_stages=''
(($#)) || {
  all_stages=1
  set -- "${stages[@]}"
}

[[ $1 == --ahead ]] || scripts/packages.sh test
export LOOKOUT_TEST_STARTED=${LOOKOUT_TEST_STARTED:-$(date +%s)}
mkdir -p build
touch -d "@$LOOKOUT_TEST_STARTED" build/started
# The time after which sanitizer tests do not start (scripts/in-time.sh).
[[ -z $all_stages ]] || export LOOKOUT_TEST_UNTIL=$((LOOKOUT_TEST_STARTED + 53 * 60))
# Reuse compiled objects in this and other clones.
export CMAKE_CXX_COMPILER_LAUNCHER=ccache CCACHE_BASEDIR=$PWD CCACHE_NOHASHDIR=1
# Also with precompiled headers: nothing depends on __TIME__ or on macros from a command line.
export CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
# Compare headers byte for byte. Otherwise ccache compares the preprocessed text, so a changed comment would not invalidate a
# precompiled header. But `#pragma once` compares whole files, so the changed header would be included twice. The namespace
# excludes older cache entries, which were stored without this setting.
export CCACHE_DEPEND=1 CCACHE_NAMESPACE=lookout-depend

# Reports and suppressions need the names of functions.
symbolizer=/usr/bin/llvm-symbolizer-16

sources() { git ls-files '*.cc' '*.h'; }

# Tests that may be skipped, besides those of a kube-apiserver (LOOKOUT_KUBE_APISERVER=none). All other
# skipped tests lack something that scripts/packages.sh installs, and count as failures.
may_skip=(
  'ForeignClient\.(Node|GoApplies)'   # need clients that are not Debian packages
  'Go(Election|Informer|Interop)Test' # need programs that scripts/go-interop.sh builds
  'HalfOpenTest'                      # needs the right to create a network namespace
  'ListensOnAnIpv6Address'            # needs IPv6
  # Kubernetes 1.20 does not support them.
  'ContractTest\.(AWatchListEqualsAList|FollowsCustomResources)/Real'
)
[[ ${LOOKOUT_KUBE_APISERVER:-} == none ]] &&
  may_skip+=('_test\.Real$|/Real$|RealServerTest|ARealServer|OutageTest')

minutes() { echo $((($(date +%s) - LOOKOUT_TEST_STARTED) / 60)); }
out_of_time() { [[ -n ${LOOKOUT_TEST_UNTIL:-} ]] && (($(date +%s) >= LOOKOUT_TEST_UNTIL)); }
omitted=''
left_out() {
  omitted=', except for skipped parts'
  echo "*** $1: ${2:-}skipped for lack of time, after $(minutes) minutes: run scripts/test.sh $1 ***"
}

# run_tests PRESET [CTEST-OPTION...]: runs the tests, more at a time than there are processors, because most of them wait more
# than they compute.
run_tests() {
  local preset=$1 log=build/$1/tests.log outcome=0 at_once=2 skipped
  shift
  # The tests of plain wait for servers.
  [[ $preset != dev ]] || at_once=3
  ctest --preset "$preset" -j $((at_once * $(nproc))) "$@" 2>&1 | tee "$log" || outcome=1
  local found='ERROR: (Address|Leak)Sanitizer|WARNING: ThreadSanitizer|: runtime error: '
  local why=': Failure$|^\[  FAILED  \] [^0-9]|^The following tests FAILED'
  if grep -Eq "$found" "$log"; then
    echo "*** A sanitizer has found something: ***"
    grep -E -A 30 "$found" "$log"
    outcome=1
  fi
  # CTest reports skipped tests that have their own process, GoogleTest also those of programs that run in parts.
  skipped=$({
    sed -n 's/^.* - \(.*\) (Skipped)$/\1/p' "$log"
    sed -n 's/^\[  SKIPPED \] \([^ ,]*\) (.*/\1/p' "build/$preset/Testing/Temporary/LastTest.log"
  } | grep -Ev "$(IFS='|' && echo "${may_skip[*]}")" | sort -u || true)
  if [[ -n $skipped ]] && out_of_time; then
    left_out "$preset" "some tests "
    skipped=$(grep -v '_test\.[0-3]$' <<<"$skipped" || true)
  fi
  if [[ -n $skipped ]]; then
    printf '*** Skipped, although everything that they need is installed: ***\n%s\n' "$skipped"
    outcome=1
  fi
  # Repeat the failures at the end of the log.
  ((outcome == 0)) || grep -E -A 6 "$why" "$log" | tail -n 120
  return "$outcome"
}

# --- work that can be done in advance: compiling, and clang-tidy

# configure PRESET [CMAKE-OPTION...]: configures a unity build, which takes half the time.
configure() { cmake --preset "$1" -DLOOKOUT_UNITY=8 "${@:2}" >/dev/null; }

# Without line numbers, which are two thirds of each program and 8 % of a test's compile time. There are a hundred programs, and
# GNU's linker takes five times as long as lld.
configure_dev() {
  configure dev -DLOOKOUT_UNIT_TESTS=OFF -DCMAKE_CXX_FLAGS_RELWITHDEBINFO="-O2 -DNDEBUG" -DLOOKOUT_TEST_PARTS=4 \
    -DCMAKE_EXE_LINKER_FLAGS="-fuse-ld=lld -B/usr/lib/llvm-16/bin -Wl,-S" "$@"
}

ahead_tsan() { configure tsan && cmake --build --preset tsan; }
ahead_asan() { configure asan && cmake --build --preset asan; }
ahead_tidy() {
  # Sources include generated headers, so these must exist; nothing else has to be built. The generator for CRDs comes from
  # stage plain.
  if [[ ! -x build/dev/api/lookout-crd-gen ]]; then
    configure_dev
    cmake --build --preset dev --target lookout-crd-gen
  fi
  cmake --preset tidy -DLOOKOUT_CRD_GENERATOR="$PWD/build/dev/api/lookout-crd-gen" >/dev/null
  cmake --build --preset tidy
  # (Ninja would build everything that the targets of these headers link.)
  ninja -C build/tidy -t commands all | grep 'lookout-crd-gen .*lookout-crds/' | (cd build/tidy && sh)
  # Sources that changed last come first. Only tests that changed in the last commits are included; they are only compiled.
  local until=$((LOOKOUT_TEST_STARTED + 40 * 60)) left=build/tidy/left tests='^(tests|examples/[a-z]+/tests)/'
  : >"$left"
  {
    # (Files other than *_test.cc may be meant not to compile.)
    git log -20 --format= --name-only -- '*.cc' | awk -v tests="$tests" '$0 !~ tests || /_test\.cc$/'
    { git log --format= --name-only -- '*.cc' && sources | grep '\.cc$'; } | grep -Ev "$tests"
  } | awk '!seen[$0]++' | grep -xFf <(sources) | xargs -P "$(nproc)" -n 4 scripts/tidy.sh "$until" "$left" 2>&1 |
    { grep -v -e 'warnings generated' -e 'Suppressed' -e 'Use -header-filter' || true; }
  [[ ! -s $left ]] || echo "*** Not checked for lack of time: $(wc -l <"$left") sources that have not changed for the longest time ***"
}

# begin_ahead STAGE...: starts the work in the background, until this script ends.
ahead=''
begin_ahead() {
  (($#)) || return 0
  rm -rf build/ahead
  mkdir -p build/ahead
  setsid nice -n 19 "$0" --ahead "$@" &
  ahead=$!
  trap 'kill -- -"$ahead" 2>/dev/null || true' EXIT
}

# not_begun STAGE: whether the stage is skipped because its work in advance did not start in time.
not_begun() {
  [[ -n $all_stages && -z $ahead ]] || return 1
  left_out "$1"
}

# await_ahead STAGE: waits for the work in advance, if any. False if it does not end in time; then the build may be incomplete.
await_ahead() {
  while [[ -n $ahead && ! -e build/ahead/$1.outcome ]] && kill -0 "$ahead" 2>/dev/null; do
    if [[ -n ${LOOKOUT_TEST_UNTIL:-} ]] && (($(date +%s) >= LOOKOUT_TEST_UNTIL - 6 * 60)); then
      kill -- -"$ahead" 2>/dev/null || true
      ahead=''
      return 1
    fi
    sleep 1
  done
}

# test_sanitized STAGE: runs the tests of a build with a sanitizer. If the build is incomplete, runs those of the programs that were
# built in time.
test_sanitized() {
  if not_begun "$1"; then return; fi
  if await_ahead "$1"; then
    finish_ahead "$1"
    run_tests "$1"
    return
  fi
  local tests
  tests=$(ctest --preset "$1" --show-only=json-v1 2>/dev/null | jq -r '.tests[] | "\(.name) \(.command[1])"' |
    while read -r name program; do [[ ! $program -nt build/started ]] || echo "$name"; done | paste -sd'|') || true
  left_out "$1" "programs that were not built are "
  [[ -z $tests ]] || run_tests "$1" -R "^(${tests//./\\.})\$"
}

# finish_ahead STAGE: uses the result of the work in advance; does the work now if there was none, or if it failed. (A compiler that
# runs beside all tests may be killed for lack of memory. A real error fails again.)
finish_ahead() {
  local outcome=build/ahead/$1.outcome
  if [[ -n $ahead && -e $outcome ]]; then
    tail -n 200 "build/ahead/$1.log"
    (($(<"$outcome"))) || return 0
    # Do not repeat clang-tidy: its time may be over, and it would check nothing.
    [[ $1 != tidy ]] || return 1
    echo "*** $1: failed in the background; trying again ***"
    free -m
    df -h . /tmp
  fi
  "ahead_$1"
}

if [[ $1 == --ahead ]]; then
  shift
  # Linux distributes CPU time over sessions first; `nice` works only within a session.
  echo 19 2>/dev/null >/proc/self/autogroup || true
  for stage in "$@"; do
    outcome=0
    # In a subshell, so that errors end it.
    bash -euo pipefail -c "$(declare -f sources configure configure_dev "ahead_$stage"); ahead_$stage" >"build/ahead/$stage.log" 2>&1 || outcome=1
    echo "$outcome" >"build/ahead/$stage.outcome.new"
    mv "build/ahead/$stage.outcome.new" "build/ahead/$stage.outcome"
  done
  exit 0
fi

# --- stages

stage_style() {
  sources | xargs -P "$(nproc)" -n 20 clang-format-16 --dry-run -Werror
  git ls-files '*.sh' | xargs shellcheck
  scripts/check-house.sh
  scripts/check-coroutines.sh
  scripts/check-local-names.py
  scripts/check-waits.sh
  scripts/check-docs.sh
  scripts/check-conformance.sh
}

stage_plain() {
  configure_dev
  cmake --build --preset dev
  local others=() stage
  for stage in $chosen; do ! declare -F "ahead_$stage" >/dev/null || others+=("$stage"); done
  if [[ -z $all_stages ]] || (($(minutes) < 30)); then begin_ahead "${others[@]}"; fi
  # The real API server that end-to-end tests run against. "none": they are skipped.
  [[ -n ${LOOKOUT_KUBE_APISERVER:-} ]] || LOOKOUT_KUBE_APISERVER=$(scripts/build-kube-apiserver.sh)
  export LOOKOUT_KUBE_APISERVER
  run_tests dev
}

stage_unit() {
  configure_dev -DLOOKOUT_UNIT_TESTS=ON
  cmake --build --preset dev
  scripts/check-conformance.sh build/dev
  run_tests dev -LE 'e2e|program|long|compile'
}

# consume PREFIX: builds and runs the programs of tests/install with the Lookout installed there.
consume() {
  local prefix=$1 what flags
  for what in all core controller registry registry_curl registry_beast registry_grpc apiserver testing sim program; do
    cmake -S tests/install -B "build/consumer/$what" -G Ninja -DCONSUME="$what" -DCMAKE_PREFIX_PATH="$prefix" >/dev/null
    cmake --build "build/consumer/$what"
    [[ $what == program ]] || "build/consumer/$what/consumer"
    [[ $what != all ]] || build/consumer/all/crd_consumer
  done
  for what in lookout:consumer.cc lookout-core:components/core.cc; do
    read -ra flags <<<"$(PKG_CONFIG_PATH=$(find "$prefix" -name pkgconfig) pkg-config --cflags --libs "${what%%:*}")"
    g++ "tests/install/${what#*:}" "${flags[@]}" -o build/consumer/with-pkg-config
    build/consumer/with-pkg-config
  done
}

# test_project SOURCE PREFIX: builds, tests and runs a controller project with the Lookout installed there.
test_project() {
  local build
  build=build/consumer/projects/$(basename "$1")
  cmake -S "$1" -B "$build" -G Ninja -DCMAKE_PREFIX_PATH="$2" >/dev/null
  cmake --build "$build"
  ctest --test-dir "$build" --output-on-failure -j "$(nproc)"
  [[ ! -e "$1/src/main.cc" ]] || "$build/$(basename "$1")-controller" --help >/dev/null
}

stage_install() {
  local prefix=$PWD/build/installed root=$PWD/build/root new=$PWD/build/consumer/new/site package
  configure_dev
  cmake --build --preset dev
  rm -rf "$prefix" "$root" build/consumer
  cmake --install build/dev --prefix "$prefix" >/dev/null
  consume "$prefix"
  "$prefix/bin/lookout" new site --kind WebSite --group web.example.com -o "$new" >/dev/null
  test_project "$new" "$prefix"
  test_project examples/website "$prefix"
  test_project examples/cronjob "$prefix"
  test_project examples/sim "$prefix"
  # With the sources instead of an installed Lookout.
  cmake -S "$new" -B "$new/with-sources" -G Ninja -DFETCHCONTENT_SOURCE_DIR_LOOKOUT="$PWD" >/dev/null

  # As a subproject, without optimisation to save time.
  cmake -S tests/install/fetch_content -B build/parent -G Ninja -DCMAKE_CXX_COMPILER=clang++-16 -DCMAKE_BUILD_TYPE=Debug \
    -DCMAKE_CXX_FLAGS_DEBUG=-O0 -DLOOKOUT_PCH=ON >/dev/null
  cmake --build build/parent --target parent
  build/parent/parent
  rm -rf build/parent-installed
  cmake --install build/parent --prefix build/parent-installed >/dev/null
  [[ $(find build/parent-installed -type f) == build/parent-installed/bin/parent ]]

  # Shared libraries have the same objects, so in the same build directory they only need linking.
  configure_dev -DBUILD_SHARED_LIBS=ON
  rm -rf build/dev/*.deb build/dev/_CPack_Packages
  cmake --build build/dev --target lookout_programs lookout_controller lookout_registry lookout_apiserver lookout_testing lookout_sim
  scripts/check-exports.sh build/dev
  (cd build/dev && cpack -G DEB >/dev/null)
  configure_dev -DBUILD_SHARED_LIBS=OFF
  for package in build/dev/*.deb; do dpkg-deb -x "$package" "$root"; done
  LD_LIBRARY_PATH=$root/usr/lib consume "$root/usr"
}

stage_bench() {
  configure_dev
  cmake --build --preset dev --target lookout_guard
  LOOKOUT_GUARD_BUILD=build/dev bench/guard.sh
}

stage_tsan() {
  TSAN_OPTIONS="halt_on_error=1 external_symbolizer_path=$symbolizer" test_sanitized tsan
}

stage_asan() {
  ASAN_OPTIONS="detect_stack_use_after_return=1 external_symbolizer_path=$symbolizer" \
    UBSAN_OPTIONS=print_stacktrace=1 \
    test_sanitized asan
}

stage_fuzz() {
  # The fuzzers are part of the build for asan.
  if [[ -n $all_stages && ! -e build/ahead/asan.outcome ]]; then
    left_out fuzz
    return
  fi
  scripts/fuzz.sh "${LOOKOUT_FUZZ_SECONDS:-8}"
}

stage_tidy() {
  if not_begun tidy; then return; fi
  await_ahead tidy || {
    left_out tidy
    return
  }
  finish_ahead tidy
}

chosen=" $* "
# The minutes after which a stage does not start.
declare -A latest=([bench]=50 [asan]=42 [tsan]=42 [fuzz]=50 [unit]=35 [install]=35 [tidy]=42)
latest[$first_sanitizer]=53
for stage in "$@"; do
  declare -F "stage_$stage" >/dev/null || {
    echo "$0: no stage \"$stage\"; there are: ${stages[*]}" >&2
    exit 2
  }
  if [[ -n $all_stages ]] && (($(minutes) >= ${latest[$stage]:-90})); then
    left_out "$stage"
    continue
  fi
  echo "=== $stage"
  SECONDS=0 omitted=''
  "stage_$stage"
  echo "=== $stage: ok$omitted, $SECONDS s"
done
