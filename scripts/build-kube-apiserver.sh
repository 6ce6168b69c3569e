#!/usr/bin/env bash
# Builds a real kube-apiserver 1.20 from Debian 12's source package "kubernetes", for the end-to-end
# tests: about 3 minutes and 3 GB of scratch space on 2 processors. Prints the path of the program.
#
# usage: scripts/build-kube-apiserver.sh [DEST]
#
# The default DEST is ${XDG_CACHE_HOME:-~/.cache}/lookout/kube-apiserver-1.20, where it is kept.
set -euo pipefail

dest=$(realpath -m "${1:-${XDG_CACHE_HOME:-$HOME/.cache}/lookout/kube-apiserver-1.20}")
if [[ -x $dest ]]; then
  echo "$dest"
  exit 0
fi

exec 3>&1 1>&2 # progress to standard error, the answer to standard output
work=$(mktemp -d)
trap 'chmod -R u+w "$work" && rm -rf "$work"' EXIT

if ! command -v go >/dev/null; then
  as_root=()
  ((EUID == 0)) || as_root=(sudo)
  "${as_root[@]}" apt-get update -q
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends golang-go
fi

# Uses separate package lists, so that the system's lists are unchanged.
mkdir -p "$work/lists/partial" "$work/sources"
cat >"$work/sources/source.list" <<LIST
deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm main
LIST
options=(-o Dir::Etc::sourcelist=/dev/null -o "Dir::Etc::sourceparts=$work/sources"
  -o "Dir::State::lists=$work/lists" -o APT::Sandbox::User=root)
apt-get "${options[@]}" update -q
(
  cd "$work"
  apt-get "${options[@]}" source -q --download-only kubernetes
  tar xzf kubernetes_*.orig.tar.gz
)

export GOPATH=$work/go GO111MODULE=off GOFLAGS='' CGO_ENABLED=0
# Fewer collections of garbage take less time and more memory.
export GOGC=${GOGC:-400}
mkdir -p "$GOPATH/src/k8s.io"
mv "$work"/kubernetes-*/ "$GOPATH/src/k8s.io/kubernetes"
cd "$GOPATH/src/k8s.io/kubernetes"

# The source package lacks the generated OpenAPI definitions: generate them for every package that requests them.
go build -o "$work/openapi-gen" k8s.io/kubernetes/vendor/k8s.io/kube-openapi/cmd/openapi-gen
packages=$(grep -rl '+k8s:openapi-gen=' --include='*.go' staging/src/k8s.io pkg vendor/k8s.io |
  grep -v -E '_test.go|testdata|code-generator|sample' | xargs -n1 dirname | sort -u |
  sed -n -e 's#^staging/src/#k8s.io/kubernetes/vendor/#p' \
    -e 's#^vendor/#k8s.io/kubernetes/vendor/#p' \
    -e 's#^pkg/#k8s.io/kubernetes/pkg/#p' | sort -u | paste -sd,)
"$work/openapi-gen" --logtostderr -i "$packages" -p k8s.io/kubernetes/pkg/generated/openapi \
  -O zz_generated.openapi -h hack/boilerplate/boilerplate.generatego.txt -r "$work/violations" \
  --output-base "$GOPATH/src"
# Leave out the clients of cloud providers, nearly half of the code: the tests have no cloud.
go build -tags providerless -ldflags '-s -w' -o "$work/kube-apiserver" k8s.io/kubernetes/cmd/kube-apiserver

mkdir -p "$(dirname "$dest")"
mv "$work/kube-apiserver" "$dest"
echo "$dest" >&3
