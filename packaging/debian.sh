#!/usr/bin/env bash
# Builds liblookout1, liblookout-dev, lookout and, if libgrpc++-dev is installed, lookout-xds: packages for the Debian that this runs on, in build/deb.
# usage: packaging/debian.sh [CMAKE-OPTION...]     for example: packaging/debian.sh --preset quick
set -euo pipefail
cd "$(dirname "$0")/.."

scripts/packages.sh debian
# In an argument, a failure would not end this script.
multiarch=$(dpkg-architecture -qDEB_HOST_MULTIARCH)
(($#)) || set -- --preset release
cmake "$@" -B build/deb -DBUILD_SHARED_LIBS=ON -DLOOKOUT_BUILD_TESTS=OFF -DLOOKOUT_BUILD_EXAMPLES=OFF -DLOOKOUT_BUILD_BENCH=OFF \
  -DCMAKE_INSTALL_PREFIX=/usr -DCMAKE_INSTALL_LIBDIR="lib/$multiarch" >/dev/null
cmake --build build/deb
rm -f build/deb/*.deb
(cd build/deb && cpack -G DEB)
