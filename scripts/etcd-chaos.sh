#!/usr/bin/env bash
# Runs `lookout serve --storage etcd` with 200 watchers at 2,000 writes a second while its etcds are killed, frozen, cut off,
# compacted, defragmented, given users and roles and new certificates, and restored from a snapshot (tests/e2e/etcd_chaos_test).
# Prints a table with the cost of each phase. CI runs the same with 10 watchers at 100 writes per second.
#
# usage: scripts/etcd-chaos.sh [--etcd SUITE|DIR] [--watchers N] [--rate N] [--seconds N] [--build DIR]
#
#   --etcd     the etcd: a suite of Debian, whose packages are unpacked beside the system (nothing is installed) and kept in
#              ${XDG_CACHE_HOME:-~/.cache}/lookout/etcd-SUITE, or a folder with etcd and etcdctl (default: that on the PATH)
#   --seconds  the load of each phase (default 10)
#   --build    where the test is built (default: build/dev)
set -euo pipefail
cd "$(dirname "$0")/.."

etcd='' watchers=200 rate=2000 seconds=10 build=build/dev
while (($#)); do
  case $1 in
    --etcd) etcd=$2 ;;
    --watchers) watchers=$2 ;;
    --rate) rate=$2 ;;
    --seconds) seconds=$2 ;;
    --build) build=$2 ;;
    *)
      sed -n '2,/^set -/s/^# \{0,1\}//p' "$0" | sed '$d'
      exit 2
      ;;
  esac
  shift 2
done

# unpack SUITE DEST
unpack() {
  local work
  work=$(mktemp -d)
  # shellcheck disable=SC2064  # as it is now
  trap "rm -rf '$work'" RETURN
  mkdir -p "$work"/{lists/partial,archives/partial,debs,root} "$2"
  : >"$work/status"
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $1 main" \
    >"$work/sources.list"
  local options=(-q -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o Dir::State="$work" -o Dir::State::lists="$work/lists" -o Dir::State::status="$work/status"
    -o Dir::Cache="$work" -o APT::Sandbox::User=root)
  apt-get "${options[@]}" update >/dev/null
  (cd "$work/debs" && apt-get "${options[@]}" download etcd-server etcd-client >/dev/null)
  for package in "$work"/debs/*.deb; do dpkg-deb -x "$package" "$work/root"; done
  cp "$work"/root/usr/bin/etcd* "$2"
}

if [[ -n $etcd ]]; then
  if [[ ! -d $etcd ]]; then
    suite=$etcd
    etcd=${XDG_CACHE_HOME:-$HOME/.cache}/lookout/etcd-$suite
    [[ -x $etcd/etcd ]] || unpack "$suite" "$etcd" >&2
  fi
  PATH=$(realpath "$etcd"):$PATH
fi
etcd --version | head -1
cmake --build "$build" --target etcd_chaos_test >/dev/null
LOOKOUT_CHAOS_WATCHERS=$watchers LOOKOUT_CHAOS_RATE=$rate LOOKOUT_CHAOS_SECONDS=$seconds \
  "$build/tests/e2e/etcd_chaos_test"
