// Waiting for what a watch tells.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/api/error.h"
#include "lookout/api/watch.h"
#include "lookout/base/attributes.h"
#include "lookout/base/clock.h"
#include "lookout/base/event_loop.h"
#include "lookout/tools/cache/indexer.h"
#include "lookout/tools/cache/lister_watcher.h"

namespace lookout::watch {

/// Whether an event ends the wait. An exception ends it, too, and comes out of it. The function
/// is called on the event loop and must not block. Conditions on the state that an event shows (the
/// pod is ready) are better than conditions on what has changed (it has become ready), which is
/// easily missed.
using Condition = std::function<bool(const api::WatchEvent& event)>;

/// The same for the content of a store.
using Precondition = std::function<bool(const cache::Indexer& store)>;

struct WaitOptions {
  /// Ends the wait.
  LOOKOUT_OPTION std::stop_token stop = {};
  /// For all of it; 0: as long as it takes.
  std::chrono::milliseconds timeout{0};
  /// Null: the machine's.
  LOOKOUT_OPTION std::shared_ptr<Clock> clock = {};
};

/// The wait ended before the condition held.
class WaitError : public Error {
 public:
  enum class Reason {
    kTimeout,  ///< WaitOptions::timeout has passed (client-go's wait.Interrupted())
    kStopped,  ///< a stop was requested
    kClosed    ///< the watch ended (client-go's ErrWatchClosed)
  };
  WaitError(Reason reason, std::optional<api::WatchEvent> last_event);

  Reason reason() const { return reason_; }
  /// The last event that a condition was asked about.
  const std::optional<api::WatchEvent>& last_event() const { return last_event_; }

 private:
  Reason reason_;
  std::optional<api::WatchEvent> last_event_;
};

// client-go's tools/watch. Each comes as a coroutine, to be awaited on a strand, and blocking
// (throws InvalidArgument on the event loop). They wait until each condition in turn has held, and
// return the event that fulfilled the last one. A condition is first asked about the event that
// fulfilled the one before it. Without conditions they return an empty event at once.
//
// All throw WaitError, what a condition throws, and api::StatusError for an event of type kError,
// which no condition sees.

/// One watch from a resourceVersion ("": any), as the server makes it: it ends after minutes, or
/// when the connection breaks. Nearly always until() is what one wants.
Awaitable<api::WatchEvent> async_until_without_retry(std::shared_ptr<cache::ListerWatcher> source,
                                                     std::string resource_version,
                                                     std::vector<Condition> conditions,
                                                     WaitOptions options = WaitOptions());
api::WatchEvent until_without_retry(EventLoop& loop, std::shared_ptr<cache::ListerWatcher> source,
                                    std::string resource_version, std::vector<Condition> conditions,
                                    WaitOptions options = {});

/// A watch from a resourceVersion that begins again whenever it ends (RetryWatcher): every event
/// comes, in order. When the server has forgotten where the watch was it throws api::StatusError
/// (api::is_gone(), api::is_resource_expired()).
Awaitable<api::WatchEvent> async_until(std::shared_ptr<cache::ListerWatcher> source,
                                       std::string resource_version,
                                       std::vector<Condition> conditions,
                                       WaitOptions options = WaitOptions());
api::WatchEvent until(EventLoop& loop, std::shared_ptr<cache::ListerWatcher> source,
                      std::string resource_version, std::vector<Condition> conditions,
                      WaitOptions options = {});

/// Lists, asks the conditions about each object as if it had been added, then goes on as until().
Awaitable<api::WatchEvent> async_list_watch_until(std::shared_ptr<cache::ListerWatcher> source,
                                                  std::vector<Condition> conditions,
                                                  WaitOptions options = WaitOptions());
api::WatchEvent list_watch_until(EventLoop& loop, std::shared_ptr<cache::ListerWatcher> source,
                                 std::vector<Condition> conditions, WaitOptions options = {});

/// The events of a small informer, which recovers from everything by listing anew: states may be
/// left out, but never the last one. With a precondition it first waits for the store to be
/// complete; if that holds, nothing is waited for, and nothing is returned.
Awaitable<std::optional<api::WatchEvent>> async_until_with_sync(
    std::shared_ptr<cache::ListerWatcher> source, Precondition precondition,
    std::vector<Condition> conditions, WaitOptions options = WaitOptions());
std::optional<api::WatchEvent> until_with_sync(EventLoop& loop,
                                               std::shared_ptr<cache::ListerWatcher> source,
                                               Precondition precondition,
                                               std::vector<Condition> conditions,
                                               WaitOptions options = {});

}  // namespace lookout::watch
