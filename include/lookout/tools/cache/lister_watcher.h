// ListerWatcher: the source of a reflector's objects.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "lookout/api/projection.h"
#include "lookout/api/watch.h"
#include "lookout/base/attributes.h"
#include "lookout/base/clock.h"
#include "lookout/rest/client.h"

namespace lookout::cache {

/// The events of one watch.
class Watcher {
 public:
  virtual ~Watcher() = default;
  /// Like rest::WatchStream::async_next().
  virtual Awaitable<bool> next(std::vector<api::WatchEvent>& events) = 0;
  /// True if a deletion that next() has just returned carries only the last known state, because
  /// the deletion itself was missed. A server's watch has no such deletions.
  virtual bool missed(const api::Object& deleted) const {
    static_cast<void>(deleted);
    return false;
  }
  /// Ends the watch and waits until none of its code runs, including code of the program that it
  /// calls, such as an error handler. A reflector always awaits it before it destroys the watch, and
  /// does not call next() afterwards. Must not throw. The default does nothing, which suits a watch
  /// that runs only in next().
  virtual Awaitable<void> end();
};

/// Why a reflector is not in sync with the server.
struct ReflectorFailure {
  LOOKOUT_OPTION std::string message = {};
  int status = 0;  ///< the HTTP status of the server's answer; 0: no answer
  Clock::TimePoint at{};
};

/// The state of the reflectors behind a source, taken together.
struct SourceHealth {
  /// True if all of them are live: Reflector::live().
  bool live = true;
  /// The start of that state.
  Clock::TimePoint live_since = Clock::TimePoint::min();
  /// The newest failure of those that are not live.
  std::optional<ReflectorFailure> failure = {};
  /// The sums of ReflectorStats::errors, also of reflectors that have ended, and of unreadable.
  std::uint64_t errors = 0;
  std::uint64_t unreadable = 0;
};

/// A source of objects: a list, and the changes since (client-go's ListerWatcher). Called on the
/// strand of one reflector.
class ListerWatcher {
 public:
  using OnItem = std::function<void(api::Object)>;

  virtual ~ListerWatcher() = default;

  /// True if a watch with send_initial_events may be requested. (If the server refuses it, the
  /// reflector lists instead.)
  virtual bool supports_watch_list() const { return true; }

  /// Lists one page. Throws what rest::ResourceClient::async_list_each() throws; a stop ends it
  /// with a TransportError of kind kCancelled.
  virtual Awaitable<rest::ListMeta> list(OnItem on_item, rest::ListOptions options,
                                         std::stop_token stop) = 0;
  /// Opens a watch. A stop also ends the returned watch.
  virtual Awaitable<std::unique_ptr<Watcher>> watch(rest::ListOptions options,
                                                    std::stop_token stop) = 0;
  /// The state of the reflectors behind this source; empty if there are none, as in front of a
  /// server. Called from any thread, under a lock: must only read.
  virtual std::optional<SourceHealth> health() const { return std::nullopt; }
};

/// Parameters of a ListWatch's requests, in addition to those that the reflector sets.
struct ListWatchOptions {
  LOOKOUT_OPTION std::string label_selector = {};
  LOOKOUT_OPTION std::string field_selector = {};
  LOOKOUT_OPTION rest::DecodeOptions decode = {};
  /// Changes the options of each list and watch, including selectors, before it is sent
  /// (client-go's TweakListOptionsFunc).
  LOOKOUT_OPTION std::function<void(rest::ListOptions&)> tweak = {};
};

/// Objects of one resource of an API server.
class ListWatch : public ListerWatcher {
 public:
  explicit ListWatch(rest::ResourceClient client, ListWatchOptions options = {});

  Awaitable<rest::ListMeta> list(OnItem on_item, rest::ListOptions options,
                                 std::stop_token stop) override;
  Awaitable<std::unique_ptr<Watcher>> watch(rest::ListOptions options,
                                            std::stop_token stop) override;

 private:
  void complete(rest::ListOptions& options) const;

  rest::ResourceClient client_;
  ListWatchOptions options_;
};

}  // namespace lookout::cache
