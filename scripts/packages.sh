#!/usr/bin/env bash
# Installs the Debian packages that a job needs; does nothing if they are installed already.
# usage: scripts/packages.sh build|debian|test|bench     (debian: to make packages; bench: additional programs for bench/compare.sh)
set -euo pipefail

build=(ca-certificates cmake g++ libboost1.81-dev libcli11-dev libcurl4-openssl-dev libfmt-dev
  libnghttp2-dev libre2-dev libspdlog-dev libssl-dev libyaml-cpp-dev ninja-build pkg-config prometheus-cpp-dev rapidjson-dev
  zlib1g-dev)
# CPack asks these about programs and libraries.
debian=("${build[@]}" dpkg-dev file)
test=("${debian[@]}" ccache chromium chromium-driver clang-16 clang-format-16 clang-tidy-16 curl
  etcd-client etcd-server iproute2 jq libbenchmark-dev libclang-rt-16-dev libgmock-dev libgrpc++-dev
  libgtest-dev libprotobuf-dev lld-16 llvm-16 nghttp2-proxy openssl procps protobuf-compiler-grpc python3
  python3-kubernetes shellcheck util-linux valgrind)
bench=("${build[@]}" curl gnuplot-nox openssl python3)
# If Node.js is on the PATH, use it: the packages would conflict with it.
command -v npm >/dev/null || bench+=(nodejs npm)
# If kubectl is on the PATH, use it: the package would conflict with it.
command -v kubectl >/dev/null || test+=(kubernetes-client)

case ${1:-} in
  build) wanted=("${build[@]}") ;;
  debian) wanted=("${debian[@]}") ;;
  test) wanted=("${test[@]}") ;;
  bench) wanted=("${bench[@]}") ;;
  *)
    echo "usage: $0 build|debian|test|bench" >&2
    exit 2
    ;;
esac

missing=()
for package in "${wanted[@]}"; do
  dpkg-query -W -f='${Status}' "$package" 2>/dev/null | grep -q 'ok installed' || missing+=("$package")
done
((${#missing[@]})) || exit 0

as_root=()
if ((EUID != 0)); then
  command -v sudo >/dev/null || {
    echo "$0: these packages are missing and there is no sudo to install them: ${missing[*]}" >&2
    exit 1
  }
  as_root=(sudo)
fi
echo "Installing ${missing[*]}"
"${as_root[@]}" apt-get update -q
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "${missing[@]}"
