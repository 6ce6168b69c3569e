// ControllerCore: a running controller.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/strand.hpp>
#include <cstdint>
#include <exception>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "controller/attachment.h"
#include "controller/environment.h"
#include "controller/hot_loop.h"
#include "lookout/base/clock.h"
#include "lookout/base/metrics.h"
#include "lookout/controller/controller.h"
#include "lookout/controller/priority_queue.h"

namespace lookout::controller::detail {

class ControllerCore : public metrics::Source, public std::enable_shared_from_this<ControllerCore> {
 public:
  static std::shared_ptr<ControllerCore> create(ControllerSpec spec, Environment environment,
                                                unsigned default_concurrency,
                                                std::shared_ptr<Clock> clock);

  const std::string& name() const { return options_.name; }
  const ControllerOptions& options() const { return options_; }

  /// Starts the sources and waits until they are ready; a second call only waits. Throws Error on timeout.
  Awaitable<void> warm_up(std::stop_token stop);
  /// Warms up and reconciles until a stop; afterwards no reconcile runs.
  Awaitable<void> run(std::stop_token stop);
  /// Stops the sources: afterwards no user code runs. Not on the event loop.
  void end();

  /// Adds a watch or a source, which starts with the others, or immediately if they have started. Throws
  /// InvalidArgument after end().
  std::shared_ptr<Attachment> watch(Watch watch);
  std::shared_ptr<Attachment> watch(std::shared_ptr<controller::Source> source);

  /// The keys that are being reconciled, for messages.
  std::vector<std::string> running() const;
  /// The reason, if a reconcile has run for longer than options().stuck_after.
  std::optional<std::string> check_stuck() const;
  void collect(std::vector<metrics::Sample>& out) const override;

 private:
  ControllerCore(ControllerSpec spec, Environment environment, unsigned default_concurrency,
                 std::shared_ptr<Clock> clock);

  class KindSource;
  class Deadline;
  struct Reconcile;
  struct Stats {
    std::atomic<std::uint64_t> success{0}, error{0}, requeue{0}, requeue_after{0};
    std::atomic<std::uint64_t> errors{0}, terminal_errors{0}, panics{0}, timeouts{0};
    std::atomic<std::uint64_t> hot_loops{0};
    metrics::Histogram seconds;
    Stats();
  };
  using Strand = boost::asio::strand<boost::asio::io_context::executor_type>;

  std::shared_ptr<Attachment> attachment(std::shared_ptr<controller::Source> source) const;
  std::shared_ptr<Attachment> attachment(std::shared_ptr<const CachedKind> kind, Watch watch,
                                         std::function<void()> detached = {});
  std::shared_ptr<Attachment> attach(std::shared_ptr<Attachment> source);
  /// The cache of a watch's cluster. Throws InvalidArgument if the manager does not have it.
  std::shared_ptr<CacheCore> cache_of(const Watch& watch) const;
  SourceContext source_context() const;
  void work();
  void pump();
  void pump_soon();
  /// Reconciles this request, then further ready ones.
  static Awaitable<void> reconcile_all(std::shared_ptr<ControllerCore> self,
                                       PriorityQueue::Item item);
  void look_for_hot_loop(const PriorityQueue::Item& item, const Context& context);
  /// The generation of the request's object, if it is cached.
  std::optional<std::int64_t> generation_of(const Request& request) const;
  void finish(const PriorityQueue::Item& item, Reconcile& one, const Result& result,
              const std::exception_ptr& error);
  void settle(const PriorityQueue::Item& item, const Context& context, const Result& result);
  /// Returns true if the request should be retried.
  bool fail(const Context& context, const std::exception_ptr& error);
  /// The rate limiter is user code: its exceptions are logged, and a fixed delay is used instead.
  void retry(const Context& context, int priority,
             Clock::Duration at_least = Clock::Duration::zero());
  void forget(const Context& context);
  static void log_limiter(const Context& context, const std::exception_ptr& error);

  ControllerOptions options_;
  const unsigned concurrency_;
  const std::shared_ptr<Clock> clock_;
  const std::shared_ptr<const Environment> environment_;
  const Reconciler reconcile_;
  const std::shared_ptr<PriorityQueue> queue_;
  const Strand strand_;
  std::vector<std::shared_ptr<const CachedKind>> kinds_;  // watched from the start
  std::shared_ptr<const CachedKind> primary_;             // the kind of the requests; may be null
  HotLoopDetector hot_loops_;
  Stats stats_;
  std::stop_source stop_;
  std::atomic<bool> pump_posted_{false};
  // On the strand.
  bool accepting_ = false;
  unsigned active_ = 0;
  std::stop_source idle_;  // requested when no work is accepted or running

  mutable std::mutex mutex_;
  // Guarded by mutex_.
  bool sources_started_ = false;
  std::vector<std::shared_ptr<Attachment>> sources_;
  std::size_t needed_ = 0;  // the number of sources to wait for
  bool ended_ = false;
  std::map<std::string, std::vector<std::weak_ptr<const KindSource>>> watches_;  // by their kinds
};

}  // namespace lookout::controller::detail
