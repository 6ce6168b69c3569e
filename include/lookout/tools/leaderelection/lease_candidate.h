// LeaseCandidate: a candidate for coordinated leader election, where the server chooses the leader.
#pragma once

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>

#include "lookout/api/object.h"
#include "lookout/base/attributes.h"
#include "lookout/base/clock.h"
#include "lookout/base/event_loop.h"
#include "lookout/rest/client.h"

namespace lookout::leaderelection {

/// Kubernetes' only strategy.
inline constexpr const char* kOldestEmulationVersion = "OldestEmulationVersion";

struct CandidateOptions {
  /// The name of the LeaseCandidate: the identity of this process's LeaderElector.
  LOOKOUT_OPTION std::string name;
  LOOKOUT_OPTION std::string ns;
  /// The Lease to be elected for.
  LOOKOUT_OPTION std::string lease_name;
  /// Versions of the program, such as "1.36.0". The server prefers the lowest emulation version,
  /// then the lowest binary version, then the oldest candidate.
  LOOKOUT_OPTION std::string binary_version;
  LOOKOUT_OPTION std::string emulation_version;
  LOOKOUT_OPTION std::string strategy = kOldestEmulationVersion;
  /// How often the candidate is renewed without a ping; servers remove one after 30 minutes.
  std::chrono::milliseconds renew_period{300'000};
  /// The pause after a failure.
  std::chrono::milliseconds retry_period{1'000};
  LOOKOUT_OPTION std::shared_ptr<Clock> clock = Clock::real();
};

/// Keeps a LeaseCandidate (coordination.k8s.io/v1beta1) on the server: creates it and renews it
/// periodically and whenever the server pings it. client-go's leaderelection.LeaseCandidate.
///
/// Use it with a LeaderElector of the same identity with Options::coordinated. The API server needs
/// the feature gate CoordinatedLeaderElection and the beta API. The library never deletes the
/// LeaseCandidate.
///
///     leaderelection::LeaseCandidate candidate(client, {.name = "website-1", .ns = "ops",
///         .lease_name = "website", .binary_version = "1.2.0", .emulation_version = "1.2.0"});
///     candidate.run(stop);
class LeaseCandidate {
 public:
  /// Throws InvalidArgument if a name, the namespace, the binary version or the strategy is empty,
  /// or a time is not positive.
  LeaseCandidate(rest::Client client, CandidateOptions options);

  /// Runs until a stop. Failures are logged and retried. Await it on a strand.
  Awaitable<void> async_run(std::stop_token stop) const;
  /// Like async_run(), from a thread outside the event loop.
  void run(std::stop_token stop) const;

 private:
  Awaitable<api::Object> renew(std::stop_token stop) const;
  Awaitable<bool> wait_for_ping(api::Object candidate, std::stop_token stop) const;

  const rest::Client client_;
  const CandidateOptions options_;
  const rest::ResourceClient candidates_;
};

}  // namespace lookout::leaderelection
