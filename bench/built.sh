# shellcheck shell=bash
# Sourced by the scripts for benchmarks.

# Builds a benchmark with the preset release; prints its path.
built() { # TARGET
  cmake --preset release -DLOOKOUT_BUILD_BENCH=ON >/dev/null &&
    cmake --build --preset release --target "$1" >/dev/null &&
    echo "build/release/bench/$1"
}
