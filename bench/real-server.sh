#!/usr/bin/env bash
# Compares the initial sync from a real kube-apiserver: builds one (scripts/build-kube-apiserver.sh), starts it on
# an etcd of its own, puts pods into it and hands it to bench/compare.sh.
#
# usage: bench/real-server.sh [PODS]      how many (default 20000); results go to docs/performance/real-server
set -euo pipefail
cd "$(dirname "$0")/.."

case ${1:-} in
  -h | --help | *[!0-9]*)
    sed -n '2,/^set -/s/^# \{0,1\}//p' "$0" | sed '$d'
    exit 2
    ;;
esac
pods=${1:-20000}
program=${LOOKOUT_KUBE_APISERVER:-$(scripts/build-kube-apiserver.sh)}
lookout=${LOOKOUT:-}
if [[ -z $lookout ]]; then
  cmake --preset release -DLOOKOUT_BUILD_BENCH=OFF >/dev/null
  cmake --build --preset release --target lookout-cmd >/dev/null
  export LOOKOUT=build/release/cmd/lookout
  lookout=$LOOKOUT
fi

work=$(mktemp -d)
started=()
trap '((${#started[@]} == 0)) || kill "${started[@]}"; wait; rm -rf "$work"' EXIT
read -r -a ports < <(python3 -c 'import socket
sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(3)]
print(*(s.getsockname()[1] for s in sockets))')
etcd_client=http://127.0.0.1:${ports[0]} etcd_peer=http://127.0.0.1:${ports[1]} server=https://127.0.0.1:${ports[2]}

openssl req -x509 -newkey rsa:2048 -nodes -keyout "$work/key.pem" -out "$work/cert.pem" -days 2 \
  -subj /CN=lookout-bench -addext subjectAltName=IP:127.0.0.1 2>/dev/null
echo SECRET,admin,admin,system:masters >"$work/tokens.csv"
openssl genrsa -out "$work/sa.key" 2048 2>/dev/null
etcd --data-dir "$work/etcd" --listen-client-urls "$etcd_client" --advertise-client-urls "$etcd_client" \
  --listen-peer-urls "$etcd_peer" --initial-advertise-peer-urls "$etcd_peer" \
  --initial-cluster "default=$etcd_peer" --unsafe-no-fsync >"$work/etcd.log" 2>&1 &
started+=($!)
"$program" --etcd-servers="$etcd_client" --bind-address=127.0.0.1 --advertise-address=127.0.0.1 \
  --secure-port="${server##*:}" --tls-cert-file="$work/cert.pem" --tls-private-key-file="$work/key.pem" \
  --service-account-key-file="$work/sa.key" --service-account-signing-key-file="$work/sa.key" \
  --service-account-issuer=https://kubernetes.default.svc --service-cluster-ip-range=10.0.0.0/24 \
  --authorization-mode=RBAC --token-auth-file="$work/tokens.csv" --max-requests-inflight=0 --enable-priority-and-fairness=false \
  --disable-admission-plugins=ServiceAccount,Priority >"$work/kube-apiserver.log" 2>&1 &
started+=($!)
# The clients come without credentials.
everybody='{"metadata": {"name": "everybody"}, "subjects": [{"kind": "Group", "name": "system:unauthenticated"}],
  "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}}'
ask=(curl -s -o /dev/null --cacert "$work/cert.pem")
for ((i = 0; i < 240; ++i)); do
  # It is ready when the roles are there; that anybody may do anything takes another moment.
  if "${ask[@]}" -f -H 'Authorization: Bearer SECRET' "$server/readyz"; then
    "${ask[@]}" -H 'Authorization: Bearer SECRET' -H 'Content-Type: application/json' --data "$everybody" \
      "$server/apis/rbac.authorization.k8s.io/v1/clusterrolebindings"
    ! "${ask[@]}" -f "$server/api/v1/namespaces/default" || break
  fi
  sleep 0.5
done

echo "putting $pods pods into it" >&2
"$lookout" bench server >"$work/load.url" &
load=$!
until [[ -s $work/load.url ]]; do sleep 0.05; done
python3 bench/fill.py "$(<"$work/load.url")/load/count=$pods,encoding=json/api/v1/pods" "$server" "$work/cert.pem"
kill "$load"

mkdir -p docs/performance/real-server
bench/compare.sh --server "$server" --ca "$work/cert.pem" --out docs/performance/real-server
