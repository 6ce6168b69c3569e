// Keeping a store like the server's.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/api/object.h"
#include "lookout/api/resource.h"
#include "lookout/rest/event_loop.h"
#include "lookout/tools/backoff.h"
#include "lookout/tools/cache/indexer.h"
#include "lookout/tools/cache/lister_watcher.h"
#include "lookout/tools/clock.h"
#include "lookout/tools/metrics.h"

namespace lookout::cache {

class InitialEvents;
struct Silence;

/// Where a reflector puts what it learns (client-go's ReflectorStore). Called on its strand.
class ReflectorStore {
 public:
  virtual ~ReflectorStore() = default;

  virtual void add(const api::Object& object) = 0;
  virtual void update(const api::Object& object) = 0;
  virtual void remove(const api::Object& object) = 0;
  /// These objects are all there are.
  virtual void replace(std::vector<api::Object> objects, const std::string& resource_version) = 0;
  /// Time to deliver everything again.
  virtual void resync() = 0;
  /// What has been handed over since the last flush came together, and the store now is as the
  /// server was at this resourceVersion.
  virtual void flush(const std::string& resource_version) = 0;
  /// What the store is going to keep of an object that comes with a list: transformed, and in the
  /// place of what the store has already the store's own handle, so that a list that brings the
  /// same again costs no memory. Called once for each item, on any thread, while the list comes in;
  /// replace() is then given what it returned.
  virtual api::Object prepare(api::Object object) const { return object; }
};

/// Called when a list or watch failed; the reflector then waits and tries again.
using WatchErrorHandler = std::function<void(std::string_view reflector, const std::exception&)>;

struct ReflectorOptions {
  /// For messages and metrics.
  std::string name = {};
  /// What it lists, for messages; by default made of what is expected: "apps/v1, Kind=Deployment".
  std::string type_description = {};
  /// What the source delivers. Objects of another kind in a watch are reported and left out; an
  /// empty kind lets everything pass.
  std::string expected_api_version = {};
  std::string expected_kind = {};
  /// How often the store's content is delivered again; 0: never.
  std::chrono::milliseconds resync_period{0};
  /// Asked each time before it is; empty: yes.
  std::function<bool()> should_resync = {};
  /// Whether to have the server stream the state as the first events of a watch (client-go's
  /// WatchList) where the source can, rather than list page by page. A server that refuses is asked
  /// for a list.
  bool use_watch_list = true;
  /// Whether to compare what was streamed with a list of the same version. For tests of servers: it
  /// costs a list each time. A difference is reported to the watch error handler and counted.
  bool check_consistency = false;
  /// Items a page where the server is to make pages; 0: client-go's rules.
  std::int64_t page_size = 0;
  /// A watch is asked to end after a random time between this and twice as much.
  std::chrono::seconds min_watch_timeout{300};
  BackoffOptions backoff = {};
  /// For so long after the first one internal errors (500) of a watch lead to the same watch again;
  /// later ones, and all if 0, to a new list.
  std::chrono::milliseconds max_internal_error_retry{0};
  /// The default logs, as client-go's.
  WatchErrorHandler watch_error_handler = {};
  /// Null: the machine's clock.
  std::shared_ptr<Clock> clock = {};
};

/// What a reflector has done so far; safe to read at any time.
struct ReflectorStats {
  /// The server was asked for the whole state, as a list or as a stream.
  std::atomic<std::uint64_t> lists{0};
  /// Of those that succeeded: streams.
  std::atomic<std::uint64_t> streamed_lists{0};
  metrics::Summary list_seconds;  ///< of those that succeeded
  metrics::Summary list_items;
  metrics::Summary watch_seconds;
  metrics::Summary watch_items;
  /// A stream was silent for a while without having announced the end of the initial events.
  std::atomic<std::uint64_t> late_initial_events{0};
  /// What was streamed was not what a list has (ReflectorOptions::check_consistency).
  std::atomic<std::uint64_t> inconsistencies{0};
  std::atomic<std::uint64_t> watches{0};
  std::atomic<std::uint64_t> short_watches{0};
  std::atomic<std::uint64_t> events{0};
  std::atomic<std::uint64_t> bookmarks{0};
  std::atomic<std::uint64_t> errors{0};
  /// Objects that were left out: malformed, nameless or of a wrong kind.
  std::atomic<std::uint64_t> skipped{0};
};

/// Gets the whole state, then watches from there, and begins again from where it was when something
/// breaks: client-go's Reflector, with its rules.
///
/// The state comes as the first events of a watch (sendInitialEvents), which then goes on; or, from
/// servers that refuse that, as a list in pages. Neither replaces the content of the store before
/// it is complete.
///
/// A coroutine on one strand. After a watch has ended in good order, or its connection broke, it
/// watches again from the last resourceVersion (bookmarks count). After 410 Gone and other errors
/// it asks for the whole state again. Between failures it waits as BackoffOptions says, or longer
/// if the server says so (Retry-After).
class Reflector : public std::enable_shared_from_this<Reflector> {
 public:
  /// `store` must live until run() has returned.
  static std::shared_ptr<Reflector> create(std::shared_ptr<ListerWatcher> source,
                                           ReflectorStore& store, ReflectorOptions options);

  /// Only before run(): in the place of what the options say.
  void set_resync_period(std::chrono::milliseconds period) { options_.resync_period = period; }
  void set_watch_error_handler(WatchErrorHandler handler) {
    options_.watch_error_handler = std::move(handler);
  }

  /// Runs until a stop is requested. To be awaited on a strand; once.
  rest::Awaitable<void> run(std::stop_token stop);

  /// The resourceVersion up to which the store has been brought; empty before the first list. From
  /// any thread, as all below.
  std::string last_sync_resource_version() const;
  /// When the server last gave a sign of life: an answer, an event, a bookmark.
  Clock::TimePoint last_activity() const;
  /// How long ago that was.
  Clock::Duration staleness() const { return clock_->now() - last_activity(); }
  /// Whether the store follows the server: the first list is there, and since the last failure of a
  /// list or a watch another one has worked. False while the server cannot be reached and while a
  /// new list is needed.
  bool live() const { return live_since().has_value(); }
  /// Since when; nothing if it does not.
  std::optional<Clock::TimePoint> live_since() const;
  const ReflectorStats& stats() const { return stats_; }
  const std::string& name() const { return options_.name; }
  /// "v1, Kind=Pod"; "<unspecified>" if everything is taken.
  const std::string& type_description() const { return options_.type_description; }

 private:
  class OpenWatch;
  Reflector(std::shared_ptr<ListerWatcher> source, ReflectorStore& store, ReflectorOptions options);

  rest::Awaitable<void> resync_loop(std::stop_token stop);
  rest::Awaitable<void> list_and_watch(std::stop_token stop, Backoff& backoff);

  /// The watch that brought the state and goes on, or nothing if there is to be a list.
  rest::Awaitable<std::unique_ptr<OpenWatch>> stream_state(std::stop_token stop);
  rest::Awaitable<bool> read_initial_events(OpenWatch& watch, InitialEvents& initial,
                                            std::string& resource_version, std::stop_token stop);
  rest::Awaitable<void> warn_of_silence(std::shared_ptr<const Silence> silence,
                                        std::stop_token stop);
  rest::Awaitable<void> check_consistency(const std::vector<api::Object>& streamed,
                                          const std::string& resource_version,
                                          std::stop_token stop);

  rest::Awaitable<void> list(std::stop_token stop);
  rest::Awaitable<std::string> list_pages(rest::ListOptions options,
                                          std::vector<api::Object>& items, std::stop_token stop);
  /// This is the whole state.
  void replace(std::vector<api::Object> objects, std::string resource_version,
               Clock::TimePoint begin);

  rest::Awaitable<std::unique_ptr<OpenWatch>> open_watch(rest::ListOptions options,
                                                         std::stop_token stop);
  rest::Awaitable<void> watch(std::unique_ptr<OpenWatch> watch, std::stop_token stop,
                              Backoff& backoff);
  rest::Awaitable<void> follow(OpenWatch& watch, std::stop_token stop);

  /// Whether an event is one to be taken; throws if it is an error.
  bool check(const api::WatchEvent& event);
  /// Hands an event to the store; false if it was left out.
  bool take(const api::WatchEvent& event);
  bool acceptable(const api::Object& object, std::string_view where);
  void handle_error(const std::exception& error);
  std::string relist_resource_version() const;
  void set_last_sync(std::string resource_version);
  void note_activity();
  void set_live(bool live);

  static constexpr Clock::TimePoint kNotLive = Clock::TimePoint::min();

  const std::shared_ptr<ListerWatcher> source_;
  ReflectorStore& store_;
  ReflectorOptions options_;  // does not change once it runs
  const std::shared_ptr<Clock> clock_;
  ReflectorStats stats_;

  // On the strand.
  std::string resource_version_;
  bool resource_version_unavailable_ = false;  // the server no longer, or not yet, has it
  bool paginated_ = false;                     // it makes pages even of what its cache could give
  bool listed_ = false;
  bool ordered_ = true;  // events come in the order of their resourceVersions
  std::minstd_rand random_;

  mutable std::mutex mutex_;
  std::string last_sync_resource_version_;  // guarded by mutex_
  std::atomic<Clock::TimePoint> last_activity_;
  std::atomic<Clock::TimePoint> live_since_{kNotLive};
};

}  // namespace lookout::cache
