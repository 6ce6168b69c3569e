#include "lookout/tools/leaderelection/leader_elector.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <boost/asio/cancellation_state.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/this_coro.hpp>
#include <exception>
#include <thread>
#include <utility>

#include "lookout/api/error.h"
#include "lookout/api/status.h"
#include "lookout/base/detail/log.h"
#include "lookout/base/detail/run_on.h"
#include "lookout/base/detail/tolerant_clock.h"
#include "lookout/k8s/coordination/v1_draft.h"
#include "lookout/rest/error.h"

namespace lookout::leaderelection {
namespace {

using k8s::coordination::v1::Lease;
using std::chrono::milliseconds;

/// client-go's JitterFactor.
constexpr double kJitter = 1.2;

api::Time wall_now() {
  return std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
}

std::int32_t whole_seconds(milliseconds duration) {
  return static_cast<std::int32_t>(std::chrono::ceil<std::chrono::seconds>(duration).count());
}

Options checked(Options options) {
  const auto refuse = [](std::string_view what) {
    throw InvalidArgument(fmt::format("leader election: {}", what));
  };
  if (options.name.empty() || options.ns.empty()) refuse("the Lease needs a name and a namespace");
  if (options.lease_duration < std::chrono::seconds(1))
    refuse("lease_duration must be a second at least");
  if (options.lease_duration <= options.renew_deadline)
    refuse("lease_duration must be longer than renew_deadline");
  if (options.retry_period <= milliseconds(0)) refuse("retry_period must be positive");
  if (options.renew_deadline <= options.retry_period * kJitter)
    refuse("renew_deadline must be longer than 1.2 times retry_period");
  if (!options.clock) refuse("there is no clock");
  // They are added to times, and the Lease has its duration in 32 bits.
  options.lease_duration = Clock::limited(options.lease_duration);
  options.renew_deadline = Clock::limited(options.renew_deadline);
  options.retry_period = Clock::limited(options.retry_period);
  if (options.identity.empty()) options.identity = make_identity();
  return options;
}

}  // namespace

std::string make_identity() {
  std::array<char, 256> host{};
  if (::gethostname(host.data(), host.size() - 1) != 0) host[0] = '\0';
  std::random_device random;
  return fmt::format("{}_{:08x}{:08x}", host.data(), random(), random());
}

/// The work, running on its own strand, and its result.
class LeaderElector::Running {
 public:
  void begin() { begun_ = true; }
  bool begun() const { return begun_; }
  std::stop_token done() const { return done_.get_token(); }

  void finish(std::exception_ptr error) {
    error_ = std::move(error);
    done_.request_stop();
  }
  void rethrow() const {
    if (error_) std::rethrow_exception(error_);
  }

 private:
  bool begun_ = false;
  std::stop_source done_;
  std::exception_ptr error_;
};

LeaderElector::LeaderElector(rest::Client client, Options options)
    : client_(std::move(client)),
      leases_(client_.resource(api::Resource(Lease::kResource), options.ns)),
      options_(checked(std::move(options))),
      random_(std::random_device{}()) {}

Awaitable<End> LeaderElector::async_run(AsyncWork work, std::stop_token stop) {
  // Its own strand: all state that mutex_ does not guard is used on it.
  co_return co_await lookout::detail::run_on(
      boost::asio::any_io_executor(boost::asio::make_strand(client_.loop().context())),
      candidacy(std::move(work), std::move(stop)));
}

End LeaderElector::run(Work work, std::stop_token stop) {
  const auto on_a_thread = [this,
                            work = std::move(work)](Leadership leadership) -> Awaitable<void> {
    // The coroutine sleeps until the thread has ended, and then joins it.
    std::stop_source returned;
    std::exception_ptr error;
    {
      const std::jthread thread([&] {
        try {
          work(leadership);
        } catch (...) {
          error = std::current_exception();
        }
        returned.request_stop();
      });
      co_await lookout::detail::wait_for(options_.clock, returned.get_token());
    }
    if (error) std::rethrow_exception(error);
  };
  return client_.loop().run(async_run(on_a_thread, std::move(stop)));
}

Awaitable<End> LeaderElector::candidacy(AsyncWork work, std::stop_token stop) {
  // Unwinding would leave the work running with references to this elector.
  co_await boost::asio::this_coro::reset_cancellation_state(boost::asio::disable_cancellation());
  const bool acquired = co_await acquire(stop);
  if (!acquired) co_return End::kStopped;
  const auto running = std::make_shared<Running>();
  std::exception_ptr failed;
  try {
    co_return co_await lead(running, work, stop);
  } catch (...) {
    failed = std::current_exception();
  }
  co_await abandon(*running);
  std::rethrow_exception(failed);
}

/// The renewal has ended unexpectedly: invalidates the leadership, so that the work stops writing, and
/// waits for the work. The configured clock may be the cause.
Awaitable<void> LeaderElector::abandon(const Running& running) {
  std::shared_ptr<Leadership::State> leadership;
  {
    const std::lock_guard lock(mutex_);
    leadership = leadership_;
  }
  if (!leadership) co_return;
  leadership->lost.store(true, std::memory_order_release);
  leadership->stop.request_stop();
  if (running.begun()) co_await lookout::detail::wait_for(Clock::real(), running.done());
  const std::lock_guard lock(mutex_);
  leadership_.reset();
}

Awaitable<bool> LeaderElector::acquire(std::stop_token stop) {
  log::info("leader election {}/{}: {} waits for the lease", options_.ns, options_.name,
            options_.identity);
  for (;;) {
    if (stop.stop_requested()) co_return false;
    const bool holds = co_await try_to_hold(std::nullopt, stop);
    if (holds) break;
    const bool slept = co_await options_.clock->sleep(retry_pause(), stop);
    if (!slept) co_return false;
  }
  log::info("leader election {}/{}: {} leads", options_.ns, options_.name, options_.identity);
  record("became leader");
  co_return true;
}

Awaitable<End> LeaderElector::lead(std::shared_ptr<Running> running, const AsyncWork& work,
                                   const std::stop_token& stop) {
  std::shared_ptr<Leadership::State> leadership;
  {
    const std::lock_guard lock(mutex_);
    leadership = leadership_;
  }
  const auto start = [](AsyncWork task, Leadership given) -> Awaitable<void> {
    co_await task(std::move(given));
  };
  boost::asio::co_spawn(boost::asio::make_strand(client_.loop().context()),
                        start(work, Leadership(leadership)),
                        [running](std::exception_ptr error) { running->finish(std::move(error)); });
  running->begin();

  // Until there is a reason to end.
  std::stop_source wake;
  std::atomic<bool> stopped{false};
  bool holds = false;
  {
    // Forward a stop to the work immediately, even while a renewal hangs.
    const std::stop_callback on_stop(stop, [&] {
      if (!running->done().stop_requested()) stopped = true;
      leadership->stop.request_stop();
      wake.request_stop();
    });
    const std::stop_callback on_done(running->done(), [&] { wake.request_stop(); });
    holds = co_await renew_until(wake.get_token(), running->done());
  }
  if (!holds) {
    leadership->lost.store(true, std::memory_order_release);
    log::error("leader election {}/{}: {} lost the lease: stopping its work", options_.ns,
               options_.name, options_.identity);
  }
  leadership->stop.request_stop();

  // Keep renewing until the work has ended.
  if (holds) holds = co_await renew_until(running->done(), running->done());
  // If the work was still running at the renew deadline, the lease is lost.
  holds = holds && Leadership(leadership).valid();
  leadership->lost.store(true, std::memory_order_release);
  co_await lookout::detail::wait_for(options_.clock, running->done());
  if (holds && options_.release) co_await release();
  {
    const std::lock_guard lock(mutex_);
    leadership_.reset();
  }
  record("stopped leading");
  running->rethrow();
  if (!holds) co_return End::kLost;
  co_return stopped ? End::kStopped : End::kDone;
}

/// Renews the lease until `wake` is requested; returns false if renewals fail for too long. `done` also
/// cancels a hanging request, because the work has ended.
Awaitable<bool> LeaderElector::renew_until(std::stop_token wake, std::stop_token done) {
  std::shared_ptr<Leadership::State> leadership;
  {
    const std::lock_guard lock(mutex_);
    leadership = leadership_;
  }
  for (;;) {
    const bool due = co_await options_.clock->sleep(options_.retry_period, wake);
    if (!due) co_return true;
    for (;;) {
      const Clock::TimePoint deadline{
          Clock::Duration(leadership->valid_until.load(std::memory_order_acquire))};
      if (options_.clock->now() >= deadline) co_return false;
      const bool renewed = co_await try_to_hold(deadline, done);
      if (renewed) break;
      if (!held_by_us() || options_.clock->now() >= deadline) co_return false;
      const Clock::Duration pause =
          std::min<Clock::Duration>(options_.retry_period, deadline - options_.clock->now());
      const bool slept = co_await options_.clock->sleep(pause, wake);
      if (!slept) co_return true;
    }
  }
}

/// One attempt to acquire or renew the lease; all of its requests end by the deadline.
Awaitable<bool> LeaderElector::try_to_hold(std::optional<Clock::TimePoint> deadline,
                                           std::stop_token stop) {
  const Clock::TimePoint sent = options_.clock->now();
  Lease lease;
  std::shared_ptr<Leadership::State> leadership;
  {
    const std::lock_guard lock(mutex_);
    lease = observed_;
    leadership = leadership_;
  }
  bool held = false;
  // The leader knows the content of the Lease, so it need not read it.
  if (leadership && held_by_us() && !options_.coordinated) {
    try {
      const milliseconds timeout = attempt_timeout(deadline);
      observe(co_await write(held_lease(lease), false, timeout, stop));
      held = true;
    } catch (const std::exception& e) {
      if (stop.stop_requested()) co_return false;
      slow_paths_.fetch_add(1, std::memory_order_relaxed);
      log::info("leader election {}/{}: reading the lease again: {}", options_.ns, options_.name,
                e.what());
    }
  }
  if (!held) {
    try {
      rest::CallOptions call;
      call.stop = stop;
      call.timeout = attempt_timeout(deadline);
      const rest::GetOptions get;
      bool create = false;
      try {
        lease = Lease(co_await leases_.async_get(options_.name, get, call));
      } catch (const api::StatusError& e) {
        if (!api::is_not_found(e)) throw;
        create = true;
      }
      // The server creates the Lease and sets its holder.
      if (create && options_.coordinated) co_return false;
      // Only the holder recreates the Lease.
      if (create && held_by_another()) co_return false;
      if (create) {
        lease = made_anew(lease);
      } else {
        observe(lease);
        // A leader never takes the lease back from another holder.
        if (held_by_another() || (leadership && !held_by_us())) co_return false;
        if (options_.coordinated && (!held_by_us() || expired())) co_return false;
      }
      const milliseconds timeout = attempt_timeout(deadline);
      observe(co_await write(held_lease(lease), create, timeout, stop));
    } catch (const std::exception& e) {
      if (!stop.stop_requested()) {
        log::warn("leader election {}/{}: {}", options_.ns, options_.name, e.what());
      }
      co_return false;
    }
  }

  // Leadership counts from the time when the request was sent: no candidate can have seen it earlier.
  const std::lock_guard lock(mutex_);
  if (!leadership_) {
    leadership_ = std::make_shared<Leadership::State>();
    leadership_->clock = options_.clock;
    leadership_->fencing_token = observed_.spec().lease_transitions().value_or(0);
  }
  leadership_->valid_until.store((sent + options_.renew_deadline).time_since_epoch().count(),
                                 std::memory_order_release);
  co_return true;
}

/// For an absent Lease: a new one, or the last observed one if it was deleted, so that
/// leaseTransitions does not restart.
Lease LeaderElector::made_anew(const Lease& seen) const {
  const auto draft = Lease::draft(options_.name, options_.ns);
  if (const auto transitions = seen.spec().lease_transitions()) {
    draft.spec().set_lease_transitions(*transitions);
    draft.spec().set_holder_identity(seen.spec().holder_identity());
    if (const auto acquired = seen.spec().acquire_time()) draft.spec().set_acquire_time(*acquired);
  }
  return draft.build();
}

/// `before` with this candidate as the holder.
Lease LeaderElector::held_lease(const Lease& before) const {
  const auto draft = before.edit();
  const auto spec = draft.spec();
  const api::Time now = wall_now();
  if (before.spec().holder_identity() != options_.identity) {
    const auto transitions = before.spec().lease_transitions();
    spec.set_lease_transitions(
        before.resource_version().empty() && !transitions ? 0 : transitions.value_or(0) + 1);
    spec.set_acquire_time(now);
    spec.set_holder_identity(options_.identity);
  }
  spec.set_lease_duration_seconds(whole_seconds(options_.lease_duration));
  spec.set_renew_time(now);
  for (const auto& [name, value] : options_.labels) draft.metadata().labels().set(name, value);
  return draft.build();
}

Awaitable<Lease> LeaderElector::write(Lease lease, bool create, milliseconds timeout,
                                      std::stop_token stop) const {
  rest::CallOptions call;
  call.stop = std::move(stop);
  call.timeout = timeout;
  const rest::CreateOptions options;
  const std::string no_subresource;
  if (create) co_return Lease(co_await leases_.async_create(lease, options, call));
  co_return Lease(co_await leases_.async_update(lease, options, no_subresource, call));
}

/// Releases the lease, if it has not changed since this candidate wrote it.
Awaitable<void> LeaderElector::release() {
  const std::stop_token stop = no_release_.get_token();
  for (int attempt = 0; attempt < 2; ++attempt) {
    Lease lease;
    {
      const std::lock_guard lock(mutex_);
      lease = observed_;
    }
    if (lease.spec().holder_identity() != options_.identity) co_return;
    const auto draft = lease.edit();
    const auto spec = draft.spec();
    const api::Time now = wall_now();
    // The server would reject a duration of 0.
    spec.set_holder_identity("").set_lease_duration_seconds(1).set_renew_time(now);
    spec.set_acquire_time(now);
    try {
      observe(co_await write(draft.build(), false, attempt_timeout(), stop));
      log::info("leader election {}/{}: {} released the lease", options_.ns, options_.name,
                options_.identity);
      co_return;
    } catch (const api::StatusError& e) {
      if (!api::is_conflict(e) || attempt > 0) {
        log::warn("leader election {}/{}: cannot release the lease: {}", options_.ns, options_.name,
                  e.what());
        co_return;
      }
    } catch (const std::exception& e) {
      log::warn("leader election {}/{}: cannot release the lease: {}", options_.ns, options_.name,
                e.what());
      co_return;
    }
    // The Lease has changed, maybe only its labels: retry if we still hold it.
    try {
      rest::CallOptions call;
      call.stop = stop;
      call.timeout = attempt_timeout();
      const rest::GetOptions get;
      observe(Lease(co_await leases_.async_get(options_.name, get, call)));
    } catch (const std::exception&) {
      co_return;
    }
  }
}

void LeaderElector::observe(Lease lease) {
  std::string leader;
  {
    const std::lock_guard lock(mutex_);
    // As in client-go, the lease duration counts from the last observed change.
    if (lease["spec"] != observed_["spec"]) observed_at_ = options_.clock->now();
    observed_ = std::move(lease);
    leader = observed_.spec().holder_identity();
    if (leader == reported_leader_) return;
    reported_leader_ = leader;
  }
  if (!options_.on_new_leader) return;
  try {
    options_.on_new_leader(leader);
  } catch (const std::exception& e) {
    log::error("leader election {}/{}: on_new_leader threw: {}", options_.ns, options_.name,
               e.what());
  } catch (...) {
    log::error("leader election {}/{}: on_new_leader threw", options_.ns, options_.name);
  }
}

void LeaderElector::record(std::string_view what) const {
  if (!options_.recorder) return;
  Lease lease;
  {
    const std::lock_guard lock(mutex_);
    lease = observed_;
  }
  record::Event event;
  event.regarding.api_version = "coordination.k8s.io/v1";
  event.regarding.kind = "Lease";
  event.regarding.ns = options_.ns;
  event.regarding.name = options_.name;
  event.regarding.uid = lease.uid();
  event.regarding.resource_version = lease.resource_version();
  event.reason = "LeaderElection";
  event.note = fmt::format("{} {}", options_.identity, what);
  try {
    options_.recorder->record(std::move(event));
  } catch (const std::exception& e) {
    log::error("leader election {}/{}: the recorder threw: {}", options_.ns, options_.name,
               e.what());
  } catch (...) {
    log::error("leader election {}/{}: the recorder threw", options_.ns, options_.name);
  }
}

bool LeaderElector::held_by_another() const {
  const std::lock_guard lock(mutex_);
  const auto spec = observed_.spec();
  if (spec.holder_identity().empty() || spec.holder_identity() == options_.identity) return false;
  const std::chrono::seconds duration(spec.lease_duration_seconds().value_or(0));
  return options_.clock->now() < observed_at_ + duration;
}

bool LeaderElector::held_by_us() const {
  const std::lock_guard lock(mutex_);
  if (!observed_ || observed_.spec().holder_identity() != options_.identity) return false;
  // A preferred holder ends the term: the server has chosen another candidate.
  return !options_.coordinated || observed_.spec().preferred_holder().empty();
}

bool LeaderElector::expired() const {
  const std::lock_guard lock(mutex_);
  const std::chrono::seconds duration(observed_.spec().lease_duration_seconds().value_or(0));
  return options_.clock->now() >= observed_at_ + duration;
}

Clock::Duration LeaderElector::retry_pause() {
  const double factor = 1 + kJitter * std::uniform_real_distribution<>()(random_);
  return std::chrono::duration_cast<Clock::Duration>(options_.retry_period * factor);
}

milliseconds LeaderElector::attempt_timeout() const {
  return std::max<milliseconds>(std::chrono::seconds(1), options_.renew_deadline / 2);
}

/// Throws rest::TransportError if the deadline has passed.
milliseconds LeaderElector::attempt_timeout(std::optional<Clock::TimePoint> deadline) const {
  if (!deadline) return attempt_timeout();
  const auto left = std::chrono::duration_cast<milliseconds>(*deadline - options_.clock->now());
  if (left <= milliseconds(0))
    throw rest::TransportError(rest::TransportError::Kind::kTimeout, "the renew deadline is over");
  return std::min(attempt_timeout(), left);
}

bool LeaderElector::is_leader() const {
  const std::lock_guard lock(mutex_);
  return leadership_ && Leadership(leadership_).valid();
}

std::string LeaderElector::leader() const {
  const std::lock_guard lock(mutex_);
  return std::string(observed_.spec().holder_identity());
}

std::optional<std::string> LeaderElector::check(milliseconds tolerance) const {
  const std::lock_guard lock(mutex_);
  if (!leadership_) return std::nullopt;
  const Clock::TimePoint valid_until{Clock::Duration(leadership_->valid_until.load())};
  const auto lease_end = valid_until - options_.renew_deadline + options_.lease_duration;
  if (options_.clock->now() <= lease_end + Clock::limited(tolerance)) return std::nullopt;
  return fmt::format("the lease {}/{} has expired, and the work of its leader has not ended",
                     options_.ns, options_.name);
}

void LeaderElector::collect(std::vector<metrics::Sample>& out) const {
  metrics::Collector collector(out, {{"name", options_.name}});
  collector.gauge("leader_election_master_status", "1 if this process leads, 0 if it does not.",
                  is_leader() ? 1 : 0);
  collector.counter("leader_election_slowpath_total",
                    "How often a renewal had to read the lease again.", slow_paths_);
}

}  // namespace lookout::leaderelection
