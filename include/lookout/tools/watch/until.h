// Waiting until watch events meet conditions.
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

/// Returns true if the event ends the wait. An exception ends the wait, too, and is rethrown. The
/// function is called on the event loop and must not block. Prefer conditions on the state of the
/// object (the pod is ready) to conditions on a change (it has become ready), which is easily
/// missed.
using Condition = std::function<bool(const api::WatchEvent& event)>;

/// A condition on the content of a store.
using Precondition = std::function<bool(const cache::Indexer& store)>;

struct WaitOptions {
  /// Ends the wait.
  LOOKOUT_OPTION std::stop_token stop = {};
  /// The limit of the whole wait; 0 or rest::kNoTimeout: none.
  std::chrono::milliseconds timeout{0};
  /// Null: the machine's clock.
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
  /// Appends `state`, if it is not empty, to the message.
  WaitError(Reason reason, const std::string& state);

  Reason reason() const { return reason_; }
  /// The last event that a condition was called with.
  const std::optional<api::WatchEvent>& last_event() const { return last_event_; }

 private:
  Reason reason_;
  std::optional<api::WatchEvent> last_event_;
};

// client-go's tools/watch. Each function exists as a coroutine, to be awaited on a strand, and as a
// blocking function (throws InvalidArgument on the event loop). They wait until each condition in
// turn has held, and return the event that met the last one. A condition is first tried on the
// event that met the previous one. Without conditions, they return an empty event immediately.
//
// All throw WaitError, what a condition throws, and api::StatusError for an event of type kError,
// which is not passed to conditions.

/// Uses a single watch from a resourceVersion ("": any). It ends when the server closes it, after
/// minutes, or when the connection breaks. Throws api::StatusError if the server refuses the watch,
/// even if it asks to retry later. Prefer until().
Awaitable<api::WatchEvent> async_until_without_retry(std::shared_ptr<cache::ListerWatcher> source,
                                                     std::string resource_version,
                                                     std::vector<Condition> conditions,
                                                     WaitOptions options = WaitOptions());
api::WatchEvent until_without_retry(EventLoop& loop, std::shared_ptr<cache::ListerWatcher> source,
                                    std::string resource_version, std::vector<Condition> conditions,
                                    WaitOptions options = {});

/// Uses a watch from a resourceVersion that is resumed whenever it ends (RetryWatcher): it delivers
/// every event, in order. If the resourceVersion has expired, throws api::StatusError
/// (api::is_gone(), api::is_resource_expired()).
Awaitable<api::WatchEvent> async_until(std::shared_ptr<cache::ListerWatcher> source,
                                       std::string resource_version,
                                       std::vector<Condition> conditions,
                                       WaitOptions options = WaitOptions());
api::WatchEvent until(EventLoop& loop, std::shared_ptr<cache::ListerWatcher> source,
                      std::string resource_version, std::vector<Condition> conditions,
                      WaitOptions options = {});

/// Lists, tries the conditions on each object as if it had been added, then continues as until().
Awaitable<api::WatchEvent> async_list_watch_until(std::shared_ptr<cache::ListerWatcher> source,
                                                  std::vector<Condition> conditions,
                                                  WaitOptions options = WaitOptions());
api::WatchEvent list_watch_until(EventLoop& loop, std::shared_ptr<cache::ListerWatcher> source,
                                 std::vector<Condition> conditions, WaitOptions options = {});

/// Uses a small informer, which recovers from every failure with a new list: it may skip states, but
/// never the last one. With a precondition, it first waits for a complete store; if the
/// precondition then holds, it returns an empty result without further waiting.
Awaitable<std::optional<api::WatchEvent>> async_until_with_sync(
    std::shared_ptr<cache::ListerWatcher> source, Precondition precondition,
    std::vector<Condition> conditions, WaitOptions options = WaitOptions());
std::optional<api::WatchEvent> until_with_sync(EventLoop& loop,
                                               std::shared_ptr<cache::ListerWatcher> source,
                                               Precondition precondition,
                                               std::vector<Condition> conditions,
                                               WaitOptions options = {});

}  // namespace lookout::watch
