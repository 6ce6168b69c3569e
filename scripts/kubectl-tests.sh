#!/usr/bin/env bash
# Runs kubectl's own command tests (test/cmd/*.sh of the Kubernetes sources) against a real kube-apiserver and
# against `lookout serve`, and prints a table.
#
# usage: scripts/kubectl-tests.sh [OPTION...] [FUNCTION...]
#
#   --source DIR       a checkout of Kubernetes (default: that of Debian 12, 1.20, kept in
#                      ${XDG_CACHE_HOME:-~/.cache}/lookout/kubectl-tests-1.20)
#   --kubectl FILE     a kubectl of the same version (default: that of Debian 12, kept in the same place; it was built with a
#                      Go that is too new for it and cannot write kubeconfigs, so `kubectl config` is that on the PATH)
#   --lookout FILE     the program (default: build/dev/cmd/lookout)
#   --apiserver FILE   the kube-apiserver (default: that of scripts/build-kube-apiserver.sh, 1.20; "none": run against
#                      Lookout only)
#   --serve "OPTION…"  further options for `lookout serve`, e.g. --simulate-cluster
#   --logs DIR         the folder for the output of each function (default: build/kubectl-tests)
#
# FUNCTION is the name of a test without "run_" and "_tests", e.g. "kubectl_apply". The default is all of them, which takes 15
# minutes for each server. Each function gets its own server, without a controller manager, and at most 5 minutes. Neither
# server has admission of service accounts, as in Kubernetes' own runs of these tests. The exit status is 1 if a function
# passes against kube-apiserver and fails against Lookout. Not all of these are defects: Lookout serves the API of 1.36, whose
# preferred versions differ from those of 1.20.
set -euo pipefail
here=$(dirname "$(realpath "$0")")

lookout=$here/../build/dev/cmd/lookout
source='' kubectl='' apiserver='' serve=() logs=$here/../build/kubectl-tests
while [[ ${1:-} == -* ]]; do
  case $1 in
    --lookout) lookout=$2 ;;
    --source) source=$2 ;;
    --kubectl) kubectl=$2 ;;
    --apiserver) apiserver=$2 ;;
    --serve) read -ra serve <<<"$2" ;;
    --logs) logs=$2 ;;
    -h | --help)
      sed -n '2,/^set -/s/^# \{0,1\}//p' "$0" | sed '$d'
      exit 0
      ;;
    *)
      echo "$0: no option \"$1\"; see --help" >&2
      exit 2
      ;;
  esac
  shift 2
done

lookout=$(realpath "$lookout")
mkdir -p "$logs"
logs=$(realpath "$logs")

# Unpacks the scripts and kubectl of Debian 12 into a folder; nothing is installed.
fetch() {
  local dest=$1 fetched
  fetched=$(mktemp -d)
  # shellcheck disable=SC2064  # as it is now
  trap "rm -rf '$fetched'" RETURN
  mkdir -p "$fetched"/{lists/partial,sources,kubectl,source} "$(dirname "$dest")"
  for kind in deb deb-src; do
    echo "$kind [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] http://deb.debian.org/debian bookworm main"
  done >"$fetched/sources/debian.list"
  local options=(-q -o Dir::Etc::sourcelist=/dev/null -o Dir::Etc::sourceparts="$fetched/sources"
    -o Dir::State::lists="$fetched/lists" -o APT::Sandbox::User=root)
  apt-get "${options[@]}" update
  (cd "$fetched" && apt-get "${options[@]}" source --download-only kubernetes &&
    apt-get "${options[@]}" download kubernetes-client)
  tar -C "$fetched/source" --strip-components=1 -xzf "$fetched"/kubernetes_*.orig.tar.gz
  dpkg-deb -x "$fetched"/kubernetes-client_*.deb "$fetched/kubectl"
  mkdir "$fetched/done"
  mv "$fetched/source" "$fetched/done/source"
  mv "$fetched/kubectl/usr/bin/kubectl" "$fetched/done/kubectl"
  mv "$fetched/done" "$dest"
}
if [[ -z $source || -z $kubectl ]]; then
  debian=${XDG_CACHE_HOME:-$HOME/.cache}/lookout/kubectl-tests-1.20
  [[ -d $debian ]] || fetch "$debian" >&2
  : "${source:=$debian/source}" "${kubectl:=$debian/kubectl}"
fi
source=$(realpath "$source")
# These differ between versions.
ca=$(find "$source/hack/testdata" -name ca.crt | head -1)
disabled_plugins=$(sed -n 's/^ *DISABLE_ADMISSION_PLUGINS="\(.*\)"/\1/p' "$source/hack/make-rules/test-cmd.sh")
: "${apiserver:=$("$here"/build-kube-apiserver.sh)}"

work=$(mktemp -d)
servers=()
# (A kube-apiserver may take minutes to shut down.)
stop_servers() {
  ((${#servers[@]} == 0)) || kill -9 "${servers[@]}" 2>/dev/null || true
  ((${#servers[@]} == 0)) || wait "${servers[@]}" 2>/dev/null || true
  servers=()
}
trap 'stop_servers; rm -rf "$work"' EXIT

mkdir "$work/bin"
writes_kubeconfigs() { HOME=$work "$1" config set-credentials any --token any >/dev/null 2>&1; }
if writes_kubeconfigs "$kubectl"; then
  ln -s "$(realpath "$kubectl")" "$work/bin/kubectl"
else
  configures=$(command -v kubectl || true)
  if [[ -z $configures ]] || ! writes_kubeconfigs "$configures"; then
    echo "$0: $kubectl cannot write kubeconfigs, and there is no other kubectl on the PATH" >&2
    exit 2
  fi
  cat >"$work/bin/kubectl" <<KUBECTL
#!/bin/sh
[ "\$1" = config ] && exec "$configures" "\$@"
exec "$(realpath "$kubectl")" "\$@"
KUBECTL
  chmod +x "$work/bin/kubectl"
fi
openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=127.0.0.1 -addext subjectAltName=IP:127.0.0.1 \
  -keyout "$work/server.key" -out "$work/server.crt" 2>/dev/null
openssl genrsa -out "$work/accounts.key" 2048 2>/dev/null

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

# start_real LOG, start_lookout LOG: set port.
start_real() {
  local etcd_port peer_port
  port=$(free_port) etcd_port=$(free_port) peer_port=$(free_port)
  rm -rf "$work/etcd"
  etcd --data-dir "$work/etcd" --unsafe-no-fsync --listen-client-urls "http://127.0.0.1:$etcd_port" \
    --advertise-client-urls "http://127.0.0.1:$etcd_port" --listen-peer-urls "http://127.0.0.1:$peer_port" \
    >"$work/etcd.log" 2>&1 &
  servers+=($!)
  # Started as in hack/make-rules/test-cmd.sh.
  "$apiserver" --bind-address=127.0.0.1 --authorization-mode=RBAC,AlwaysAllow --secure-port="$port" \
    --enable-admission-plugins=LimitRanger,ResourceQuota \
    --disable-admission-plugins="$disabled_plugins" \
    --etcd-servers="http://127.0.0.1:$etcd_port" --runtime-config=api/v1 \
    --service-account-key-file="$work/accounts.key" --service-account-signing-key-file="$work/accounts.key" \
    --service-account-issuer=https://kubernetes.default.svc --cert-dir="$work/certificates" \
    --service-cluster-ip-range=10.0.0.0/24 --client-ca-file="$ca" \
    --token-auth-file="$source/hack/testdata/auth-tokens.csv" >"$1" 2>&1 &
  servers+=($!)
}

start_lookout() {
  port=$(free_port)
  "$lookout" serve --listen "127.0.0.1:$port" --tls-cert "$work/server.crt" --tls-key "$work/server.key" \
    --client-ca "$ca" --token-file "$source/hack/testdata/auth-tokens.csv" \
    --service-account-key-file "$work/accounts.key" "${serve[@]}" >"$1" 2>&1 &
  servers+=($!)
}

wait_until_ready() {
  for _ in {1..240}; do
    curl -sfk -H 'Authorization: Bearer admin-token' "https://127.0.0.1:$port/readyz" >/dev/null && return
    sleep 0.25
  done
  echo "the server does not become ready" >&2
  return 1
}

# Runs in its own shell: the scripts' helpers, and the variables that their runTests() sets first.
cat >"$work/run.sh" <<'RUN'
set -o errexit -o nounset -o pipefail
export LANG=C TERM=${TERM:-dumb}
cd "$KUBE_ROOT"
for part in logging util test; do source "hack/lib/$part.sh"; done
foundError='' THIS_PLATFORM_BIN=$KUBE_OUTPUT_HOSTBIN
source test/cmd/legacy-script.sh
CONTEXT=test
eval "$(sed -n '/^  create_and_use_new_namespace() {/,/^  }/p; /^  export [a-z_0-9]*=/p' test/cmd/legacy-script.sh)"
kube_flags_without_token=(-s "https://127.0.0.1:$SECURE_API_PORT" --insecure-skip-tls-verify)
kube_flags=("${kube_flags_without_token[@]}")
kube_flags_with_token=("${kube_flags_without_token[@]}" --token=admin-token)
export SUPPORTED_RESOURCES=('*')
record_command() { "$@"; }
kube::util::ensure-gnu-sed
kubectl config set-credentials test-admin --token admin-token
kubectl config set-cluster local --insecure-skip-tls-verify --server "https://127.0.0.1:$SECURE_API_PORT"
kubectl config set-context "$CONTEXT" --user test-admin --cluster local
kubectl config use-context "$CONTEXT"
# (Without the annotation, a current server has no fields to record managers for.)
kubectl create -f - <<<'{"kind": "Node", "apiVersion": "v1", "metadata": {"name": "127.0.0.1", "annotations": {"save-managers": "true"}}, "status": {"capacity": {"memory": "1Gi"}}}'
trap stop-proxy EXIT
"$FUNCTION"
RUN

# run_function SIDE FUNCTION: true if it passes.
run_function() {
  local side=$1 function=$2 log=$logs/$1-$2.log passed=0 home
  home=$(mktemp -d "$work/home.XXXX")
  cp "$work/server.crt" "$home/apiserver.crt" # some functions look for it there
  if [[ $side == real ]]; then start_real "$logs/real-$function-server.log"; else start_lookout "$logs/lookout-$function-server.log"; fi
  if wait_until_ready 2>"$log"; then
    FUNCTION=$function KUBE_ROOT=$source KUBE_OUTPUT_HOSTBIN=$work/bin KUBE_TEMP=$home HOME=$home TMPDIR=$home \
      SECURE_API_PORT=$port timeout -k 5 300 bash "$work/run.sh" >"$log" 2>&1 </dev/null || passed=1
  else
    passed=1
  fi
  stop_servers
  rm -rf "$home"
  return "$passed"
}

# The first sign of failure in a log.
reason() {
  sed -e 's/\x1b\[[0-9;]*m//g' -e 's/\x1b(B//g' "$logs/$1-$2.log" | grep -v -E '^[+]+ (exit code|error)' |
    grep -m1 -A3 -E 'FAIL!|^FAIL|^[Ee]rror|Timeout' | tr '|\n' '/ ' | cut -c1-200
}

functions=("$@")
if (($# == 0)); then
  mapfile -t functions < <(grep -oE '(record_command )?run_[A-Za-z_]+_tests?\b|run_kubectl_diff_same_names' "$source/test/cmd/legacy-script.sh" |
    sed 's/^record_command //' | awk '!seen[$0]++')
else
  for i in "${!functions[@]}"; do
    mapfile -t matching < <(grep -ohE "^(function )?run_${functions[i]}(_tests?)?\(" "$source"/test/cmd/*.sh | tr -d '(' | sed 's/^function //')
    ((${#matching[@]} == 1)) || {
      echo "$0: no function \"${functions[i]}\"" >&2
      exit 2
    }
    functions[i]=${matching[0]}
  done
fi

echo "| function | kube-apiserver | lookout serve | |"
echo "|---|---|---|---|"
worse=0 done=0
for function in "${functions[@]}"; do
  name=${function#run_} why='' real=-
  name=${name%_tests}
  done=$((done + 1))
  [[ ! -t 2 ]] || printf '%d of %d: %s\r' "$done" "${#functions[@]}" "$name" >&2
  if [[ $apiserver != none ]]; then
    real=passes
    run_function real "$function" || real=fails
  fi
  ours=passes
  run_function lookout "$function" || {
    ours=fails
    why=$(reason lookout "$function" || true)
    [[ $real == fails ]] || worse=1
  }
  echo "| $name | $real | $ours | $why |"
done
exit "$worse"
