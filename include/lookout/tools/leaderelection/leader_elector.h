// LeaderElector: leader election on a Lease, so that one of several processes does the work.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/base/attributes.h"
#include "lookout/base/clock.h"
#include "lookout/base/event_loop.h"
#include "lookout/base/metrics.h"
#include "lookout/k8s/coordination/v1.h"
#include "lookout/rest/client.h"
#include "lookout/tools/leaderelection/leadership.h"
#include "lookout/tools/record/event_recorder.h"

namespace lookout::leaderelection {

/// The defaults are client-go's and controller-runtime's.
struct Options {
  /// The Lease that all candidates share. The library never deletes it.
  LOOKOUT_OPTION std::string name;
  LOOKOUT_OPTION std::string ns;
  /// The holder's name in the Lease; unique among candidates. Empty: host name and a random number.
  LOOKOUT_OPTION std::string identity = {};
  /// How long other candidates wait after the last renewal they saw, before they take the lease.
  std::chrono::milliseconds lease_duration{15'000};
  /// How long the leader retries a failing renewal before it gives up.
  std::chrono::milliseconds renew_deadline{10'000};
  /// The pause between attempts; candidates add random jitter of up to 1.2 times the pause.
  std::chrono::milliseconds retry_period{2'000};
  /// Releases the lease when the work is done, so that the next leader need not wait for
  /// lease_duration.
  bool release = true;
  /// Lets the server choose the leader among LeaseCandidates (feature gate
  /// CoordinatedLeaderElection): the elector only takes a Lease that names it as the holder, and
  /// its leadership ends when the Lease names a preferred holder. See lease_candidate.h.
  bool coordinated = false;
  /// Called when the holder changes, including to this candidate; an empty name means that there is
  /// none. Runs on the event loop and must not block.
  LOOKOUT_OPTION std::function<void(std::string_view identity)> on_new_leader = {};
  LOOKOUT_OPTION std::shared_ptr<Clock> clock = Clock::real();
  /// Records an event about the Lease when this candidate becomes leader and when it stops leading;
  /// may be null.
  LOOKOUT_OPTION std::shared_ptr<record::EventRecorder> recorder = {};
  /// Labels for the Lease, set again on every renewal; other labels stay.
  LOOKOUT_OPTION std::map<std::string, std::string> labels = {};
};

/// Why a candidacy ended.
enum class End {
  kStopped,  ///< a stop was requested, before or while leading
  kDone,     ///< the work returned
  kLost,     ///< the lease could not be renewed in time, or another candidate holds it
};

/// "host_1b9d6bcd4f2a": the default identity.
std::string make_identity();

/// A candidate: client-go's leaderelection.LeaderElector on a Lease. It uses the same protocol, so
/// Go and C++ programs can be candidates for the same lease.
///
///     leaderelection::LeaderElector elector(client, {.name = "website", .ns = "ops"});
///     const auto end = elector.run([&](const Leadership& leadership) { work(leadership.stop()); },
///                                  stop);
///     if (end == leaderelection::End::kLost) return 1;   // exit; a new process starts fresh
///
/// Only the local clock counts, so the clocks of machines may differ, but their rates must not
/// differ by more than lease_duration / renew_deadline. Beyond client-go:
/// - The elector waits for the work before it releases the lease and before run() returns. While
///   the work winds down after a stop, the elector keeps renewing the lease.
/// - A release cannot erase a successor: it is refused if the Lease has changed since.
/// - If the Lease is deleted while it is held, its holder creates it again: the others wait as long
///   as if it had not been deleted.
/// - Leadership::valid() turns false at the renew deadline without any action.
///
/// Use the stop token to end it; Asio's cancellation of an awaiting coroutine is ignored.
///
/// One candidacy runs at a time. All other functions may be called from any thread.
class LeaderElector : public metrics::Source {
 public:
  using AsyncWork = std::function<Awaitable<void>(Leadership)>;
  using Work = std::function<void(const Leadership&)>;

  /// Throws InvalidArgument unless lease_duration > renew_deadline > 1.2 * retry_period,
  /// lease_duration is at least a second, and name and namespace are set.
  LeaderElector(rest::Client client, Options options);

  /// Waits to become leader, starts `work`, and renews the lease until a stop is requested, the
  /// work returns or leadership is lost. Then it stops the work, waits for it, and releases the
  /// lease unless it is lost. Throws what the work throws. The elector must outlive the call.
  Awaitable<End> async_run(AsyncWork work, std::stop_token stop = std::stop_token());
  /// Like async_run(), from a thread outside the event loop; `work` runs on its own thread.
  End run(Work work, std::stop_token stop = {});
  /// Cancels a running release of the lease and skips a later one: for a program that has no time
  /// left to wait for a server that does not answer. Other candidates then wait for lease_duration.
  void give_up_release() { no_release_.request_stop(); }

  const std::string& identity() const LOOKOUT_LIFETIME_BOUND { return options_.identity; }
  /// True if, by the local clock, this candidate leads at this moment.
  bool is_leader() const;
  /// The holder of the lease when it was last read; empty if there was none.
  std::string leader() const;
  /// For a liveness probe; client-go's HealthzAdaptor: an error message if this candidate still
  /// works as the leader `tolerance` after its lease has expired.
  std::optional<std::string> check(std::chrono::milliseconds tolerance = {}) const;

  /// leader_election_master_status and leader_election_slowpath_total, as in client-go.
  void collect(std::vector<metrics::Sample>& out) const override;

 private:
  class Running;

  Awaitable<End> candidacy(AsyncWork work, std::stop_token stop);
  Awaitable<bool> acquire(std::stop_token stop);
  Awaitable<End> lead(std::shared_ptr<Running> running, const AsyncWork& work,
                      const std::stop_token& stop);
  Awaitable<bool> renew_until(std::stop_token wake, std::stop_token done);
  Awaitable<bool> try_to_hold(std::optional<Clock::TimePoint> deadline, std::stop_token stop);
  Awaitable<void> abandon(const Running& running);
  Awaitable<void> release();
  k8s::coordination::v1::Lease made_anew(const k8s::coordination::v1::Lease& seen) const;
  k8s::coordination::v1::Lease held_lease(const k8s::coordination::v1::Lease& before) const;
  Awaitable<k8s::coordination::v1::Lease> write(k8s::coordination::v1::Lease lease, bool create,
                                                std::chrono::milliseconds timeout,
                                                std::stop_token stop) const;
  void observe(k8s::coordination::v1::Lease lease);
  void record(std::string_view what) const;
  bool held_by_another() const;
  bool held_by_us() const;
  bool expired() const;
  Clock::Duration retry_pause();
  std::chrono::milliseconds attempt_timeout() const;
  std::chrono::milliseconds attempt_timeout(std::optional<Clock::TimePoint> deadline) const;

  const rest::Client client_;
  const rest::ResourceClient leases_;
  const Options options_;
  std::minstd_rand random_;  // on the strand of the candidacy
  std::atomic<std::uint64_t> slow_paths_{0};
  std::stop_source no_release_;

  mutable std::mutex mutex_;
  // Guarded by mutex_.
  k8s::coordination::v1::Lease observed_;
  Clock::TimePoint observed_at_{};
  std::string reported_leader_;
  std::shared_ptr<Leadership::State> leadership_;
};

}  // namespace lookout::leaderelection
