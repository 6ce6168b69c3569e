#!/usr/bin/env bash
# Prepares Go and client-go from Debian's packages, unpacked into a separate folder (nothing is installed), and builds Go
# programs with them.
#
# usage: scripts/client-go.sh [prepare]            prints the folder of Go and client-go
#        scripts/client-go.sh build DIR PROGRAM    builds the main package in DIR; its variable
#                                                 `version`, if it has one, is client-go's
#        scripts/client-go.sh env                  prints shell commands that set up `go build` and `go test`
#
# Newer suites have newer versions. The first suite that is available and works is kept in
# ${XDG_CACHE_HOME:-~/.cache}/lookout/client-go-SUITE. $LOOKOUT_CLIENT_GO_SUITES (default "sid trixie") lists the suites to
# try, in order.
set -euo pipefail

cache=${XDG_CACHE_HOME:-$HOME/.cache}/lookout
read -ra suites <<<"${LOOKOUT_CLIENT_GO_SUITES:-sid trixie}"

# Prints only errors. Creates DEST/go (GOROOT) and DEST/gopath.
unpack() {
  local suite=$1 dest=$2
  local work packages=() package
  work=$(mktemp -d "$dest.XXXXXX")
  # shellcheck disable=SC2064  # as it is now
  trap "rm -rf '$work'" RETURN
  mkdir -p "$work"/{lists/partial,archives/partial,root,debs}
  : >"$work/status" # as if nothing were installed: the whole closure is found
  echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian $suite main" \
    >"$work/sources.list"
  local options=(-q -o Dir::Etc::sourcelist="$work/sources.list" -o Dir::Etc::sourceparts=/dev/null
    -o Dir::Etc::preferencesparts=/dev/null -o Dir::State="$work" -o Dir::State::lists="$work/lists"
    -o Dir::State::status="$work/status" -o Dir::Cache="$work" -o APT::Sandbox::User=root)
  apt-get "${options[@]}" update >/dev/null || return 1
  # Only Go packages: programs are built without cgo. (client-go's own benchmarks need goleak.)
  mapfile -t packages < <(apt-get "${options[@]}" install --no-install-recommends -s golang-k8s-client-go-dev \
    golang-go golang-uber-goleak-dev |
    awk '$1 == "Inst" && $2 ~ /^golang-/ {print $2}')
  ((${#packages[@]} > 10)) || return 1
  (cd "$work/debs" && apt-get "${options[@]}" download "${packages[@]}" >/dev/null) || return 1
  for package in "$work"/debs/*.deb; do dpkg-deb -x "$package" "$work/root" || return 1; done

  local toolchain
  toolchain=$(find "$work/root/usr/lib" -maxdepth 1 -name 'go-*' | sort -V | tail -1)
  # Debian splits the toolchain between /usr/lib and /usr/share with symbolic links: merge the parts.
  mkdir -p "$work/done/go" "$work/done/gopath"
  cp -rL "$toolchain/bin" "$toolchain/pkg" "$work/done/go/"
  cp "$toolchain/VERSION" "$work/done/go/" 2>/dev/null || cp "$work/root/usr/share/${toolchain##*/}/VERSION" "$work/done/go/"
  cp -r "$work/root/usr/share/${toolchain##*/}/src" "$work/done/go/src"
  for package in "$work/root/usr/share/${toolchain##*/}"/{misc,api,test}; do
    [[ ! -d $package ]] || cp -r "$package" "$work/done/go/"
  done
  mv "$work/root/usr/share/gocode/src" "$work/done/gopath/src"
  (cd "$work/debs" && printf '%s\n' golang-k8s-client-go-dev_*.deb golang-1*-go_*.deb) >"$work/done/versions"
  GOROOT=$work/done/go GOPATH=$work/done/gopath GO111MODULE=off GOFLAGS='' CGO_ENABLED=0 GOTOOLCHAIN=local \
    "$work/done/go/bin/go" build k8s.io/client-go/kubernetes k8s.io/client-go/tools/cache || return 1
  rm -rf "$dest"
  mv "$work/done" "$dest"
}

prepare() {
  local suite
  mkdir -p "$cache"
  for suite in "${suites[@]}"; do
    if [[ -x $cache/client-go-$suite/go/bin/go ]]; then
      echo "$cache/client-go-$suite"
      return
    fi
  done
  command -v apt-get dpkg-deb >/dev/null || {
    echo "$0: Go and client-go come from Debian's packages, and this is no Debian" >&2
    return 1
  }
  for suite in "${suites[@]}"; do
    echo "$0: fetching client-go from Debian $suite" >&2
    if unpack "$suite" "$cache/client-go-$suite" >&2; then
      echo "$cache/client-go-$suite"
      return
    fi
    echo "$0: no client-go that works from $suite" >&2
  done
  return 1
}

use() {
  export GOROOT=$1/go GO111MODULE=off GOFLAGS='' CGO_ENABLED=0 GOTOOLCHAIN=local GOPATH=$1/gopath
  export PATH=$1/go/bin:$PATH
}

case ${1:-prepare} in
  prepare) prepare ;;
  build)
    where=$(prepare)
    use "$where"
    program=$(realpath -m "$3")
    version=$(sed -n 's/^golang-k8s-client-go-dev_\(.*\)_all.deb/\1/p' "$where/versions")
    cd "$2" && go build -ldflags "-X main.version=$version" -o "$program" .
    ;;
  env)
    where=$(prepare)
    cat <<ENV
export GOROOT=$where/go GO111MODULE=off GOFLAGS= CGO_ENABLED=0 GOTOOLCHAIN=local GOPATH=$where/gopath
export PATH=$where/go/bin:\$PATH
ENV
    ;;
  *)
    sed -n '2,/^set -/s/^# \{0,1\}//p' "$0"
    exit 2
    ;;
esac
