// A cluster in the small: objects with a history, listed and watched as an API server does it.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <exception>
#include <limits>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lookout/api/object.h"
#include "lookout/api/resource.h"
#include "lookout/api/status.h"
#include "lookout/tools/cache/lister_watcher.h"

/// Helpers for tests of programs that use Lookout. (Named so, and not for its folder, because
/// GoogleTest's namespace is `testing`.)
namespace lookout::test {

/// Where a test's informers get their objects from: client-go's FakeControllerSource, and more.
///
///     auto source = std::make_shared<test::FakeControllerSource>();
///     informer::SharedIndexInformer pods(source, {}, loop, pool);
///     pods.start();
///     source->put(pod);
///     ASSERT_TRUE(source->wait_until_watched());  // the informer has seen it
///
/// It numbers versions, remembers the history of changes, lists in pages, streams its state
/// (sendInitialEvents), and answers from versions that it has forgotten with 410 as a server does.
/// It fails when it is told to. Serves any number of informers. Safe to use from any thread; must
/// outlive the loop that its requests run on.
class FakeControllerSource : public cache::ListerWatcher {
 public:
  /// `type`: what it serves, for bookmarks and errors.
  explicit FakeControllerSource(api::GroupVersionKind type = {"", "v1", "Pod"});
  ~FakeControllerSource() override;

  // --- The objects

  /// Creates the object, or changes the one of that key; returns it as it is now, with the next
  /// resourceVersion.
  api::Object put(const api::Object& object);
  /// The key is "namespace/name". Does nothing if there is no such object.
  void remove(std::string_view key);
  /// All there is, by key.
  std::map<std::string, api::Object> contents() const;
  /// The newest resourceVersion.
  std::string resource_version() const;

  // --- What can go wrong

  /// Sends what changed last once more, as an addition.
  void repeat();
  /// All watches end, in good order or because the connection breaks.
  void disconnect();
  void break_connections();
  /// All watches get this as an ERROR event, and end.
  void send_error(const api::StatusError& error);
  /// Other resources change, and all watches get a bookmark.
  void bookmark();
  /// The server keeps no history of what has been up to now: watches that begin before, and pages
  /// of lists that began before, are answered with 410 Gone.
  void forget();
  /// The next request fails.
  template <class E>
  void fail_list(E error) {
    const std::lock_guard lock(mutex_);
    list_errors_.push_back(std::make_exception_ptr(error));
  }
  template <class E>
  void fail_watch(E error) {
    const std::lock_guard lock(mutex_);
    watch_errors_.push_back(std::make_exception_ptr(error));
  }
  /// From now on requests wait.
  void pause();
  void resume();
  /// Whether it streams its state; if not, it refuses with 422, as a server does that is too old.
  void stream_state(bool yes);
  /// No more events than this come together.
  void deliver_at_once(std::size_t events);

  // --- What is going on

  std::size_t lists() const;
  std::size_t watches() const;
  /// Waits until so many watches have delivered everything and wait for more; all events have been
  /// applied then. False if it takes too long.
  bool wait_until_watched(std::size_t watches = 1) const;
  /// Waits until so many requests are held up by pause().
  bool wait_until_held_up(std::size_t requests = 1) const;

  Awaitable<rest::ListMeta> list(OnItem on_item, rest::ListOptions options,
                                 std::stop_token stop) override;
  Awaitable<std::unique_ptr<cache::Watcher>> watch(rest::ListOptions options,
                                                   std::stop_token stop) override;

 private:
  class FakeWatcher;
  class Waiter;
  class HeldUp;
  struct Change {
    api::WatchEvent event;
    std::uint64_t version;
  };
  enum class End { kGoodOrder, kBroken };

  void change(api::EventType type, api::Object object);
  api::Object mark(std::uint64_t version, bool end_of_initial_events) const;
  void end_watches(End end);
  void ring();  // under the mutex
  /// Waits until `ready` holds, which is asked under the mutex; throws if it is stopped before.
  template <class Ready>
  Awaitable<void> wait(const Ready& ready, std::stop_token stop);
  /// Every request does this first: it waits while there is a pause, and fails if it is to.
  Awaitable<void> begin(std::deque<std::exception_ptr>& errors, std::size_t& count,
                        std::stop_token stop);

  const api::GroupVersionKind type_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  // All guarded by mutex_.
  std::map<std::string, api::Object> objects_;
  std::vector<Change> history_;
  std::uint64_t version_ = 100;
  std::uint64_t forgotten_ = 0;  // the newest version of which there is no history
  std::map<std::string, std::pair<std::uint64_t, std::vector<api::Object>>> pages_;  // by token
  std::uint64_t next_token_ = 0;
  std::uint64_t connection_ = 0;  // watches of earlier ones have ended
  End end_ = End::kGoodOrder;
  std::optional<api::WatchEvent> last_words_;
  std::deque<std::exception_ptr> list_errors_;
  std::deque<std::exception_ptr> watch_errors_;
  bool paused_ = false;
  bool streams_ = true;
  std::size_t at_once_ = std::numeric_limits<std::size_t>::max();
  std::size_t held_up_ = 0;
  std::size_t lists_ = 0;
  std::size_t watches_ = 0;
  std::list<const FakeWatcher*> watchers_;
  std::list<Waiter*> waiters_;
};

}  // namespace lookout::test
