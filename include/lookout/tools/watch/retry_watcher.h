// RetryWatcher: a watch that resumes after it ends.
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <vector>

#include "lookout/api/status.h"
#include "lookout/api/watch.h"
#include "lookout/base/attributes.h"
#include "lookout/base/clock.h"
#include "lookout/base/event_loop.h"
#include "lookout/tools/cache/lister_watcher.h"

namespace lookout::cache {
class RepeatedError;
}

namespace lookout::watch {

struct RetryWatcherOptions {
  /// The minimum time between the starts of two watches.
  std::chrono::milliseconds min_restart_delay{1000};
  /// Null: the machine's clock.
  LOOKOUT_OPTION std::shared_ptr<Clock> clock = {};
};

/// A watch that resumes from its last position when the server ends it, the connection breaks, or
/// an attempt fails: client-go's RetryWatcher. It delivers every event once and in order; bookmarks
/// only update the position. An attempt may fail for any reason: no response, no credentials, a
/// response that is not a watch. If the server asks it to wait (Retry-After), it waits that long, up
/// to two minutes at a time.
///
/// It ends if it cannot resume. 410 Gone, and a refusal (401, 403), become a last event of type
/// kError with their Status: the caller must list again to recover (until_with_sync(), an
/// informer). An event without a resourceVersion ends it in the same way, and an undecodable one
/// throws (api::DecodeError).
///
/// For one coroutine at a time, on a strand.
class RetryWatcher : public cache::Watcher {
 public:
  /// `resource_version`: that of a list or an object; the watch delivers the changes after it.
  /// Throws InvalidArgument for "" and "0", for which a server may send outdated state. A stop ends
  /// the watch: next() then throws TransportError of kind kCancelled.
  RetryWatcher(std::shared_ptr<cache::ListerWatcher> source, std::string resource_version,
               std::stop_token stop = {}, RetryWatcherOptions options = {});
  ~RetryWatcher() override;

  Awaitable<bool> next(std::vector<api::WatchEvent>& events) override;

  /// The resourceVersion from which the next watch would start. Safe from any thread.
  std::string last_resource_version() const;

 private:
  Awaitable<void> open(std::vector<api::WatchEvent>& events);
  void wait_if_asked(const api::StatusError& error);
  void take(std::vector<api::WatchEvent>& from, std::vector<api::WatchEvent>& events);
  void end_with(const api::WatchEvent& event, std::vector<api::WatchEvent>& events);
  void set_resource_version(std::string version);

  const std::shared_ptr<cache::ListerWatcher> source_;
  const std::stop_token stop_;
  const std::chrono::milliseconds min_restart_delay_;
  const std::shared_ptr<Clock> clock_;
  mutable std::mutex mutex_;
  std::string resource_version_;  // guarded by mutex_
  std::unique_ptr<cache::Watcher> watcher_;
  std::vector<api::WatchEvent> batch_;
  Clock::TimePoint next_attempt_{};
  const std::unique_ptr<cache::RepeatedError> logged_;
  bool done_ = false;
};

}  // namespace lookout::watch
