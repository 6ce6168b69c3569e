// Faults of a simulated world, as data.
#pragma once

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

namespace lookout::sim {

/// Kinds of faults. A request fault strikes one request of a process; a timed fault strikes a process at
/// one time.
enum class FaultKind : std::uint8_t {
  // Request faults:
  kLoseRequest,   ///< the connection breaks before the server has seen the request
  kLoseAnswer,    ///< the server executes the request; the connection breaks before the response
  kFailAfter,     ///< the server executes the request; the client gets 500
  kRefuse,        ///< 409 (updates), 410 (lists, watches), 429 with Retry-After, 500 or 503
  kDelay,         ///< the response is delayed
  kHang,          ///< there is no response; the client's deadline ends the call
  kCutStream,     ///< a watch breaks after a while
  kStallStream,   ///< a watch is silent for a while, then breaks: states are missed
  kExpireWatch,   ///< a watch breaks, and the missed events are compacted: the next watch gets 410
  kLateEvents,    ///< the events of a watch are delayed
  kRepeatEvents,  ///< some events of a watch are delivered twice
  /// Another replica of the API server responds: an older version that does not support watch lists
  /// (sendInitialEvents) and whose cache lags. A list with resourceVersion=0 returns an old state, and
  /// the watch after it delivers nothing for a while.
  kStaleRead,
  kCrashBefore,  ///< the process ends before the request is sent
  kCrashAfter,   ///< the process ends after the server has executed the request
  kEdit,         ///< a user's edit runs right before the request (World::edit())
  // Timed faults:
  kCrash,      ///< the process ends at any point
  kFreeze,     ///< the process does not run for a while; its clock continues
  kPartition,  ///< no data passes between the process and the API server for a while
  kClockJump,  ///< the process's wall clock jumps
  // Timed faults of "etcd" only (WorldOptions::etcd). For "etcd", kCrash restarts a member; with kFreeze,
  // a member accepts connections but does not respond; with kPartition, a member cannot reach the others.
  kNoLeader,  ///< the cluster has no leader for a while
  kCompact,   ///< the history is compacted, up to the current revision or close to it
  kLag,       ///< a member applies writes late, for a while
};
inline constexpr std::size_t kFaultKinds = static_cast<std::size_t>(FaultKind::kLag) + 1;

/// "lost answer".
std::string_view name_of(FaultKind kind);
/// True for timed faults, false for request faults.
bool is_of_time(FaultKind kind);

/// One fault.
struct Fault {
  FaultKind kind = FaultKind::kDelay;
  /// The name of the process that it strikes.
  std::string process = {};
  /// The request's number, counted from 1 over all lives of the process; for "etcd", counted among the
  /// calls with the same `call`. For timed faults: milliseconds since the start of the world.
  std::uint64_t at = 0;
  /// kRefuse: the status.
  int status = 0;
  /// The length of the fault; for kClockJump, the length of the jump (may be negative).
  std::chrono::milliseconds duration{0};
  /// Request faults of "etcd": the client and the call: "client 1, KV/Txn /registry/pods/default/web".
  std::string call = {};

  bool operator==(const Fault&) const = default;
};

/// "website, request 17: lost answer".
std::string describe(const Fault& fault);

/// The faults of a run; a run can be repeated with the same faults, or with fewer.
using Plan = std::vector<Fault>;

/// The kinds and the frequency of the faults that a world draws.
struct FaultOptions {
  /// A kind that occurs twice is twice as likely.
  std::vector<FaultKind> kinds = {};
  /// The probability that a fault strikes a request.
  double per_request = 0.03;
  /// The rate of timed faults for each process.
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
