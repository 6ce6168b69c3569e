#!/usr/bin/env bash
# Runs the same jobs with Lookout, client-go and @kubernetes/client-node, in turn and several times, against the same server on
# this machine; prints medians and ratios.
#
# usage: bench/compare.sh [--quick] [--rounds N] [--only PATTERN] [--out DIR] [--server URL [--ca FILE]]
#
#   --quick     fewer objects and rounds: about five minutes instead of half an hour
#   --rounds N  how often each job runs (default 5; quick: 3)
#   --only P    only jobs whose names match this extended regular expression
#   --out DIR   the folder for results (default docs/performance; quick: build/bench-quick)
#   --server U  use the pods of this API server instead of the load server's; only for sync jobs
#   --ca FILE   the CA of its certificate
#
# Writes results.jsonl (each run), results.json (medians) and *.svg to the folder. Reports and omits parts that are not
# available (client-go needs Debian's archive, client-node npm, plots gnuplot).
set -euo pipefail
cd "$(dirname "$0")/.."

quick='' rounds='' only=. out='' server='' ca=''
while (($#)); do
  case $1 in
    --quick) quick=1 ;;
    --rounds) rounds=$2 && shift ;;
    --only) only=$2 && shift ;;
    --out) out=$2 && shift ;;
    --server) server=$2 && shift ;;
    --ca) ca=$(realpath "$2") && shift ;;
    *)
      sed -n '2,/^set -/s/^# \{0,1\}//p' "$0"
      exit 2
      ;;
  esac
  shift
done
rounds=${rounds:-${quick:+3}}
rounds=${rounds:-5}
out=${out:-${quick:+build/bench-quick}}
out=${out:-docs/performance}
mkdir -p "$out" build/peers

# --- the clients
lookout=${LOOKOUT:-}
if [[ -z $lookout ]]; then
  cmake --preset release -DLOOKOUT_BUILD_BENCH=OFF >/dev/null
  cmake --build --preset release --target lookout-cmd lookout-bench >/dev/null
  lookout=build/release/cmd/lookout
fi
go=build/peers/client-go
scripts/client-go.sh build bench/peers/client-go "$go" || {
  echo "*** No client-go here: its columns stay empty. ***" >&2
  go=''
}
node=build/peers/client-node/main.js
if command -v npm >/dev/null; then
  mkdir -p "${node%/*}"
  cp bench/peers/client-node/* "${node%/*}"
  (cd "${node%/*}" && npm install --silent --no-fund --no-audit >/dev/null 2>&1) || node=''
else
  node=''
fi
[[ -n $node ]] || echo "*** No client-node here: its columns stay empty. ***" >&2

# --- the servers
servers=()
trap '((${#servers[@]} == 0)) || kill "${servers[@]}" 2>/dev/null || true' EXIT
# still_runs WHAT: ends this script if the server that was started last has ended.
still_runs() {
  kill -0 "${servers[-1]}" 2>/dev/null && return
  echo "$0: the $1 ended before it listened" >&2
  exit 1
}
start_server() { # NAME FLAGS...
  local name=$1
  shift
  : >"build/peers/$name.url"
  "$lookout" bench server "$@" ${go:+--protobuf-encoder "$PWD/$go encode"} >"build/peers/$name.url" &
  servers+=($!)
  until [[ -s build/peers/$name.url ]]; do
    still_runs "server \"$name\""
    sleep 0.05
  done
}
if [[ -z $server ]]; then
  cert=build/peers/cert.pem key=build/peers/key.pem
  [[ -s $cert ]] || openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -keyout "$key" \
    -out "$cert" -days 3650 -subj /CN=lookout-bench -addext subjectAltName=IP:127.0.0.1 2>/dev/null
  start_server plain
  start_server tls --tls-cert "$cert" --tls-key "$key"
  plain=$(<build/peers/plain.url) tls=$(<build/peers/tls.url)
fi

results=$out/results.jsonl
: >"$results"

# One run: ROW CLIENT COMMAND... ; its output is appended to the results.
run() {
  local row=$1 client=$2 line
  shift 2
  if line=$(timeout 600 "$@" 2>build/peers/stderr); then
    printf '{"row":"%s","column":"%s","result":%s}\n' "$row" "$client" "$line" >>"$results"
  else
    echo "*** $row, $client failed: $(tail -1 build/peers/stderr)" >&2
  fi
}

# The time in which the server sends the same data to a client that discards it.
discard=(curl -sf -o /dev/null -w '{"client":"curl","wall_s":%{time_total}}')

# Runs a job with all clients that support it: ROW JOB URL LOAD FLAGS...
job() {
  local row=$1 kind=$2 url=$3 load=$4 lookout_flags=() go_flags=()
  shift 4
  [[ $row =~ $only ]] || return 0
  lookout_flags=("$@" -o json) go_flags=("$@")
  if [[ $url == https* ]]; then
    lookout_flags+=(--ca "${ca:-$cert}")
    go_flags+=(--ca "${ca:-$cert}")
  fi
  local json_url=$url any_url=$url
  if [[ -n $load ]]; then
    json_url=$url/load/$load,encoding=json any_url=$url/load/$load
  fi
  echo "  $row" >&2
  run "$row" "lookout json" "$lookout" --content-type json bench "$kind" --server "$json_url" "${lookout_flags[@]}"
  run "$row" "lookout protobuf" "$lookout" --content-type protobuf bench "$kind" --server "$any_url" \
    "${lookout_flags[@]}"
  if [[ -n $go && $row != *crontabs* && $row != *-alone ]]; then
    run "$row" "client-go json" "$go" "$kind" --server "$json_url" --encoding json "${go_flags[@]}"
    run "$row" "client-go protobuf" "$go" "$kind" --server "$any_url" --encoding protobuf "${go_flags[@]}"
  fi
  [[ $row == sync-list* ]] || return 0
  local ca_file=$PWD/${cert:-} ca_flag=() cacert=()
  [[ -z $ca ]] || ca_file=$ca
  [[ $url != https* ]] || { ca_flag=(--ca "$ca_file") && cacert=(--cacert "$ca_file"); }
  [[ -z $node ]] ||
    run "$row" "client-node json" node --expose-gc "$node" sync --server "$json_url" "${ca_flag[@]}"
  run "$row" "server json" "${discard[@]}" "${cacert[@]}" "$json_url/api/v1/pods?resourceVersion=0"
  run "$row" "server protobuf" "${discard[@]}" "${cacert[@]}" -H 'Accept: application/vnd.kubernetes.protobuf' \
    "$any_url/api/v1/pods?resourceVersion=0"
}

# A controller, on a new API server for each run. (`lookout bench controller` starts its own.)
controller_job() { # OBJECTS
  local flags=(--objects "$1") log=build/peers/serve.log url=''
  [[ controller =~ $only ]] || return 0
  echo "  controller" >&2
  run controller "lookout protobuf" "$lookout" bench controller -o json "${flags[@]}"
  [[ -n $go ]] || return 0
  for encoding in json protobuf; do
    : >"$log"
    "$lookout" serve --listen 127.0.0.1:0 >"$log" 2>&1 &
    servers+=($!)
    until url=$(grep -o 'http://[0-9.:]*' "$log"); do
      still_runs "API server"
      sleep 0.05
    done
    run controller "client-go $encoding" "$go" controller --server "${url%%$'\n'*}" --encoding "$encoding" "${flags[@]}"
    kill "${servers[-1]}"
    wait "${servers[-1]}" || true
    unset 'servers[-1]'
  done
}

n=20000 events=100000 slow_events=20000
[[ -z $quick ]] || n=10000 events=30000 slow_events=5000

for ((round = 1; round <= rounds; ++round)); do
  echo "round $round of $rounds" >&2
  if [[ -n $server ]]; then
    job sync-list sync "$server" '' --mode list
    job sync-watchlist sync "$server" '' --mode watchlist
    continue
  fi
  job sync-list sync "$plain" "count=$n" --mode list
  job sync-watchlist sync "$plain" "count=$n" --mode watchlist
  job sync-list-tls sync "$tls" "count=$n" --mode list
  job sync-watchlist-tls sync "$tls" "count=$n" --mode watchlist
  job sync-unmanaged sync "$plain" "count=$n" --keep unmanaged
  job sync-registry sync "$plain" "count=$n" --keep registry
  if [[ -z $quick ]]; then
    job sync-1k sync "$plain" "count=$n,bytes=1000"
    job sync-30k sync "$plain" "count=$((n / 5)),bytes=30000"
    job sync-endpointslices-alone sync "$plain" "count=$n" --resource endpointslices
    job sync-nodes-alone sync "$plain" "count=5000" --resource nodes
    job sync-configmaps-alone sync "$plain" "count=$n" --resource configmaps
    job sync-crontabs-alone sync "$plain" "count=$n" --resource crontabs
  fi
  job events-flat-out events "$plain" "count=2000,events=$events,delay=1000" --events "$events"
  job events-2000-a-second events "$plain" "count=2000,events=$slow_events,rate=2000,delay=1000" \
    --events "$slow_events"
  job informers-1000 informers "$plain" "count=10" --informers 1000
  controller_job $((n / 2))
  if [[ growth =~ $only ]] && ((round <= 3)); then
    for count in 1000 10000 100000 1000000; do
      [[ -z $quick || $count -le 100000 ]] || continue
      echo "  growth, $count objects" >&2
      run "growth-$count" "lookout json" "$lookout" bench sync -o json \
        --server "$plain/load/count=$count,bytes=1000,encoding=json"
      run "growth-$count" "lookout protobuf" "$lookout" bench sync -o json \
        --server "$plain/load/count=$count,bytes=1000"
      # A million objects would take client-go several gigabytes.
      [[ -z $go || $count -gt 100000 ]] || run "growth-$count" "client-go protobuf" "$go" sync \
        --server "$plain/load/count=$count,bytes=1000" --encoding protobuf
      run "store-$count" "lookout json" "$lookout" bench store -o json --objects "$count"
    done
  fi
done

python3 bench/report.py "$out"
