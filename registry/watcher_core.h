// What a watcher is made of, kept alive by what waits.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <utility>

#include "lookout/registry/watcher.h"
#include "registry/atomic_ref.h"

namespace lookout::registry::detail {

/// Where the newest set of a service is published.
using Published = AtomicRef<InstanceSet>;

/// Waits to be rung when there is a new set, and remembers what was taken last. Whoever publishes
/// rings and goes on; whoever watches takes what is the newest when he comes to it.
class WatcherCore : public std::enable_shared_from_this<WatcherCore> {
 public:
  explicit WatcherCore(std::shared_ptr<const Published> published)
      : published_(std::move(published)) {}

  /// Never waits for the watcher.
  void ring();
  /// Ends it; the first reason counts.
  void end(NextOutcome reason);
  bool ended() const;

  /// What next() returns now, if anything.
  std::optional<NextResult> take();

  /// Waits on the calling thread.
  NextResult wait(std::stop_token stop, Deadline deadline);
  /// Waits in a coroutine.
  static rest::Awaitable<NextResult> async_wait(std::shared_ptr<WatcherCore> self,
                                                std::stop_token stop, Deadline deadline);

  /// `wake` is called (without a lock, from any thread, and must not block) whenever take() may
  /// return something. One at a time; an empty one takes it away.
  void set_wake(std::function<void()> wake);

 private:
  std::optional<NextResult> take_locked();
  void changed(std::unique_lock<std::mutex> lock);
  static rest::Awaitable<NextResult> wait_on_strand(std::shared_ptr<WatcherCore> self,
                                                    std::stop_token stop, Deadline deadline);

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  // All guarded by mutex_.
  std::shared_ptr<const Published> published_;
  bool rung_ = true;     // nobody has looked since there was something new
  InstanceSetPtr last_;  // what was taken last
  std::optional<NextOutcome> end_;
  std::shared_ptr<const std::function<void()>> wake_;
};

}  // namespace lookout::registry::detail
