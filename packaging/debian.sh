#!/usr/bin/env bash
# Builds liblookout1, liblookout-dev and lookout, packages for the Debian that this runs on, in build/deb.
# usage: packaging/debian.sh [CMAKE-OPTION...]     for example: packaging/debian.sh --preset quick
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/packages.sh build
(($#)) || set -- --preset release
# Without xDS, so that the program does not depend on gRPC's libraries; -DLOOKOUT_XDS=ON has it.
cmake -DLOOKOUT_XDS=OFF "$@" -B build/deb -DBUILD_SHARED_LIBS=ON -DLOOKOUT_BUILD_TESTS=OFF -DLOOKOUT_BUILD_EXAMPLES=OFF -DLOOKOUT_BUILD_BENCH=OFF \
  -DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_INSTALL_LIBDIR="lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)" >/dev/null
cmake --build build/deb
rm -f build/deb/*.deb
(cd build/deb && cpack -G DEB)
