#include "testing/sim/draw.h"

#include <algorithm>
#include <array>
#include <vector>

#include "testing/sim/random.h"

namespace lookout::sim {
namespace {

using std::chrono::milliseconds;

int status_for(const RequestNote& request, Random& random) {
  std::vector<int> out{429, 500, 503};
  if (request.method == "PUT" || request.method == "PATCH") out.push_back(409);
  if (request.watches() || request.target.find("continue=") != std::string::npos)
    out.push_back(410);
  return out[random.below(out.size())];
}

/// True if this timed fault can strike the process.
bool strikes(FaultKind kind, const std::string& process) {
  const bool of_etcd =
      kind == FaultKind::kNoLeader || kind == FaultKind::kCompact || kind == FaultKind::kLag;
  return process == kEtcd ? kind != FaultKind::kClockJump : !of_etcd;
}

milliseconds duration_of(FaultKind kind, const FaultOptions& options, Random& random) {
  const std::int64_t longest = options.longest.count();
  switch (kind) {
    case FaultKind::kDelay:
      return milliseconds(random.between(50, 5'000));
    case FaultKind::kStaleRead:
      return milliseconds(random.between(0, 5'000));
    case FaultKind::kCutStream:
      return milliseconds(random.between(0, 60'000));
    case FaultKind::kStallStream:
    case FaultKind::kExpireWatch:
      return milliseconds(random.between(500, 30'000));
    case FaultKind::kLateEvents:
      return milliseconds(random.between(100, 20'000));
    case FaultKind::kFreeze:
    case FaultKind::kPartition:
    case FaultKind::kLag:
      return milliseconds(random.between(1'000, std::max<std::int64_t>(longest, 1'001)));
    case FaultKind::kClockJump:
      return milliseconds(random.between(-600'000, 600'000));
    case FaultKind::kNoLeader:
      return milliseconds(random.between(300, 12'000));
    default:
      return milliseconds(0);
  }
}

/// The faults of requests to both servers.
template <class Request>
bool fits_both(FaultKind kind, const Request& request) {
  switch (kind) {
    case FaultKind::kLoseAnswer:
    case FaultKind::kFailAfter:
      return request.writes();
    case FaultKind::kCutStream:
    case FaultKind::kStallStream:
    case FaultKind::kExpireWatch:
      return request.watches();
    case FaultKind::kLoseRequest:
    case FaultKind::kRefuse:
    case FaultKind::kDelay:
      return true;
    case FaultKind::kHang:
      return !request.watches();
    default:
      return false;
  }
}

/// Draws whether a fault strikes the request, and its kind.
template <class Request>
std::optional<Fault> draw_kind(const FaultOptions& options, const Request& request,
                               Random& random) {
  if (!random.chance(options.per_request)) return std::nullopt;
  std::vector<FaultKind> possible;
  for (const FaultKind kind : options.kinds) {
    if (fits(kind, request)) possible.push_back(kind);
  }
  if (possible.empty()) return std::nullopt;
  Fault out;
  out.kind = possible[random.below(possible.size())];
  out.at = request.number;
  return out;
}

}  // namespace

bool fits(FaultKind kind, const RequestNote& request) {
  switch (kind) {
    case FaultKind::kCrashAfter:
      return request.writes();
    case FaultKind::kLateEvents:
    case FaultKind::kRepeatEvents:
      return request.watches();
    case FaultKind::kStaleRead:
      return request.asks_any_version() || request.asks_first_state();
    case FaultKind::kCrashBefore:
    case FaultKind::kEdit:
      return true;
    default:
      return fits_both(kind, request);
  }
}

bool fits(FaultKind kind, const EtcdCall& call) { return fits_both(kind, call); }

std::optional<Fault> draw(const FaultOptions& options, std::uint64_t seed, const EtcdCall& call) {
  Random random(mix(seed ^ hash_of(call.who())) ^ mix(call.number));
  std::optional<Fault> out = draw_kind(options, call, random);
  if (!out) return out;
  out->process = kEtcd;
  out->call = call.who();
  if (out->kind == FaultKind::kRefuse) out->status = static_cast<int>(random.below(kEtcdRefusals));
  out->duration = duration_of(out->kind, options, random);
  return out;
}

std::optional<Fault> draw(const FaultOptions& options, std::uint64_t seed,
                          const RequestNote& request) {
  Random random(mix(seed ^ hash_of(request.process)) ^ mix(request.number));
  std::optional<Fault> out = draw_kind(options, request, random);
  if (!out) return out;
  out->process = request.process;
  if (out->kind == FaultKind::kRefuse) out->status = status_for(request, random);
  out->duration = duration_of(out->kind, options, random);
  return out;
}

Fault typical(FaultKind kind, const RequestNote& request) {
  Random random(mix(hash_of(request.process)) ^ mix(request.number));
  Fault out;
  out.kind = kind;
  out.process = request.process;
  out.at = request.number;
  if (kind == FaultKind::kRefuse) out.status = status_for(request, random);
  out.duration = duration_of(kind, all_faults(), random);
  return out;
}

Plan draw(const FaultOptions& options, std::uint64_t seed, const std::string& process,
          milliseconds from, milliseconds to) {
  std::vector<FaultKind> possible;
  for (const FaultKind kind : options.kinds) {
    if (is_of_time(kind) && strikes(kind, process)) possible.push_back(kind);
  }
  Plan out;
  if (possible.empty() || to <= from) return out;
  Random random(mix(seed ^ hash_of(process) ^ 0x74696d65));
  // One draw per second.
  const double each = options.per_minute / 60.0;
  for (milliseconds second = from; second < to; second += milliseconds(1000)) {
    if (!random.chance(each)) continue;
    Fault fault;
    fault.kind = possible[random.below(possible.size())];
    fault.process = process;
    fault.at = static_cast<std::uint64_t>(second.count()) + random.below(1000);
    fault.duration = duration_of(fault.kind, options, random);
    out.push_back(fault);
  }
  return out;
}

}  // namespace lookout::sim
