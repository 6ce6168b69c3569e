// What a watcher is made of, kept alive by what waits.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>

#include "lookout/registry/watcher.h"

namespace lookout::registry::detail {

/// A place for one set: the newest. Whoever publishes drops it here and goes on; whoever watches
/// takes it when he comes to it.
class WatcherCore : public std::enable_shared_from_this<WatcherCore> {
 public:
  /// Never waits for the watcher.
  void offer(InstanceSetPtr set);
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
  InstanceSetPtr offered_;  // the newest, null when it has been taken
  InstanceSetPtr last_;     // what was taken last
  std::optional<NextOutcome> end_;
  std::shared_ptr<const std::function<void()>> wake_;
};

}  // namespace lookout::registry::detail
