// FakeControllerSource: an object source for tests, which behaves like an API server.
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

/// Helpers for tests of programs that use Lookout. (Not named `testing`, because GoogleTest has a
/// namespace of that name.)
namespace lookout::test {

/// A source of objects for the informers of a test: an extended form of client-go's FakeControllerSource.
///
///     auto source = std::make_shared<test::FakeControllerSource>();
///     informer::SharedIndexInformer pods(source, {}, loop, pool);
///     pods.start();
///     source->put(pod);
///     ASSERT_TRUE(source->wait_until_watched());  // the informer has seen it
///
/// It assigns versions, keeps the history of changes, lists in pages, and streams its state
/// (sendInitialEvents). Like a server, it answers requests for forgotten versions with 410. It
/// fails on request. Serves any number of informers. Safe to use from any thread; must outlive the
/// event loop of its requests.
class FakeControllerSource : public cache::ListerWatcher {
 public:
  /// `type`: the type of the objects, for bookmarks and errors.
  explicit FakeControllerSource(api::GroupVersionKind type = {"", "v1", "Pod"});
  ~FakeControllerSource() override;

  // --- The objects

  /// Creates the object, or replaces the one with the same key; returns it with its new
  /// resourceVersion.
  api::Object put(const api::Object& object);
  /// The key is "namespace/name". Does nothing if there is no such object.
  void remove(std::string_view key);
  /// All objects, by key.
  std::map<std::string, api::Object> contents() const;
  /// The newest resourceVersion.
  std::string resource_version() const;

  // --- Failures

  /// Sends the last change again, as an addition.
  void repeat();
  /// Ends all watches: normally, or by breaking the connection.
  void disconnect();
  void break_connections();
  /// Sends this to all watches as an ERROR event, which ends them.
  void send_error(const api::StatusError& error);
  /// Counts a change of other resources, and sends a bookmark to all watches.
  void bookmark();
  /// Drops the history so far: watches that start at an earlier version, and pages of lists that
  /// started earlier, are answered with 410 Gone.
  void forget();
  /// Makes the next request fail.
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
  /// Delays all requests from now on.
  void pause();
  void resume();
  /// Whether the source streams its state; otherwise it rejects such requests with 422, like an old
  /// server.
  void stream_state(bool yes);
  /// The maximum number of events that a watch delivers together.
  void deliver_at_once(std::size_t events);

  // --- Observation

  std::size_t lists() const;
  std::size_t watches() const;
  /// Waits until this many watches have delivered everything and wait for more; then all events
  /// have been applied. Returns false on timeout.
  bool wait_until_watched(std::size_t watches = 1) const;
  /// Waits until this many requests are delayed by pause().
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
  /// Waits until `ready`, which is called under the mutex, returns true; throws if a stop is
  /// requested first.
  template <class Ready>
  Awaitable<void> wait(const Ready& ready, std::stop_token stop);
  /// The first step of every request: waits during a pause, and throws if the request is to fail.
  Awaitable<void> begin(std::deque<std::exception_ptr>& errors, std::size_t& count,
                        std::stop_token stop);

  const api::GroupVersionKind type_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  // All guarded by mutex_.
  std::map<std::string, api::Object> objects_;
  std::vector<Change> history_;
  std::uint64_t version_ = 100;
  std::uint64_t forgotten_ = 0;  // the newest version without a history
  std::map<std::string, std::pair<std::uint64_t, std::vector<api::Object>>> pages_;  // by token
  std::uint64_t next_token_ = 0;
  std::uint64_t connection_ = 0;  // watches of earlier connections have ended
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
