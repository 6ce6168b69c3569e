// Faults of a simulated world, as data.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace lookout::sim {

/// Kinds of faults. Faults of requests strike a certain request of a process; faults of time
/// strike at a certain time.
enum class FaultKind : std::uint8_t {
  // Faults of requests:
  kLoseRequest,   ///< the connection breaks before the server has seen the request
  kLoseAnswer,    ///< the server has done it; the connection breaks before the answer
  kFailAfter,     ///< the server has done it; the client gets 500
  kRefuse,        ///< 409 (updates), 410 (lists, watches), 429 with Retry-After, 500 or 503
  kDelay,         ///< the answer comes late
  kHang,          ///< no answer comes; the client's deadline ends the call
  kCutStream,     ///< a watch breaks after a while
  kStallStream,   ///< a watch is silent for a while, then breaks: states pass unobserved
  kExpireWatch,   ///< a watch breaks, and what it missed is compacted: the next one gets 410
  kLateEvents,    ///< a watch goes on, but its events come late
  kRepeatEvents,  ///< some events of a watch come twice
  /// Another replica of the API server answers, an older one, which does not stream its state
  /// (sendInitialEvents) and whose cache lags: a list of any version (resourceVersion=0) shows the
  /// past, and the watch that follows has nothing to say for a while.
  kStaleRead,
  kCrashBefore,  ///< the process ends before the request is sent
  kCrashAfter,   ///< the process ends when the server has done it
  kEdit,         ///< a user does something right before it (World::edit())
  // Faults of time:
  kCrash,      ///< the process ends, wherever it is
  kFreeze,     ///< the process does not run for a while; its clock goes on
  kPartition,  ///< nothing passes between the process and the API server for a while
  kClockJump,  ///< the process's wall clock jumps
  // Faults of time that strike only "etcd" (WorldOptions::etcd). There, kCrash is a member that starts
  // again, kFreeze one that accepts connections and says nothing, and kPartition one that does not
  // reach the others:
  kNoLeader,  ///< the cluster has no leader for a while
  kCompact,   ///< the history is forgotten, up to now or nearly so
  kLag,       ///< a member learns late what is written, for a while
};
inline constexpr std::size_t kFaultKinds = static_cast<std::size_t>(FaultKind::kLag) + 1;

/// "lost answer".
std::string_view name_of(FaultKind kind);
/// Whether it strikes at a time rather than at a request.
bool is_of_time(FaultKind kind);

/// One fault.
struct Fault {
  FaultKind kind = FaultKind::kDelay;
  /// Whom it strikes.
  std::string process = {};
  /// The number of the request, counted from 1 over all lives of the process; of "etcd": of the calls
  /// that have the same `call`; of time: milliseconds since the world began.
  std::uint64_t at = 0;
  /// kRefuse: the status.
  int status = 0;
  /// How long, or how far for kClockJump (may be negative).
  std::chrono::milliseconds duration{0};
  /// Of "etcd", but not of time: whose calls, and which: "client 1, KV/Txn /registry/pods/default/web".
  std::string call = {};

  bool operator==(const Fault&) const = default;
};

/// "website, request 17: lost answer".
std::string describe(const Fault& fault);

/// Faults that strike a run. To run it again with the same faults, or with fewer.
using Plan = std::vector<Fault>;

/// Which faults a world draws, and how many.
struct FaultOptions {
  std::vector<FaultKind> kinds = {};
  /// The probability that a fault strikes a request.
  double per_request = 0.03;
  /// Faults of time, for each process.
  double per_minute = 2;
  /// kFreeze and kPartition last between 1 s and this.
  std::chrono::milliseconds longest{40'000};

  FaultOptions without(std::initializer_list<FaultKind> some) const;
};

/// No faults.
FaultOptions no_faults();
/// Every kind.
FaultOptions all_faults();
/// These kinds.
FaultOptions only(std::initializer_list<FaultKind> some);

}  // namespace lookout::sim
