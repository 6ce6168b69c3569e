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
#include "lookout/base/attributes.h"
#include "lookout/base/backoff.h"
#include "lookout/base/clock.h"
#include "lookout/base/event_loop.h"
#include "lookout/base/metrics.h"
#include "lookout/tools/cache/indexer.h"
#include "lookout/tools/cache/lister_watcher.h"

namespace lookout::cache {

class InitialEvents;
class Unreadable;
struct Silence;

/// Where a reflector puts what it learns (client-go's ReflectorStore). Called on its strand.
class ReflectorStore {
 public:
  virtual ~ReflectorStore() = default;

  virtual void add(const api::Object& object) = 0;
  virtual void update(const api::Object& object) = 0;
  virtual void remove(const api::Object& object) = 0;
  /// The same for an object whose deletion was missed (Watcher::missed()).
  virtual void remove_missed(const api::Object& last) { remove(last); }
  /// These objects are all there are.
  virtual void replace(std::vector<api::Object> objects, const std::string& resource_version) = 0;
  /// Time to deliver everything again.
  virtual void resync() = 0;
  /// The changes since the last flush came together. The store is now as the server was at this
  /// resourceVersion.
  virtual void flush(const std::string& resource_version) = 0;
  /// What the store is going to keep of an object that comes with a list: transformed, and in the
  /// place of what the store has already the store's own handle, so that a list that brings the
  /// same again costs no memory. Called once for each item, on any thread, while the list comes in;
  /// replace() is then given what it returned, be it an empty handle (there is nothing to keep).
  virtual api::Object prepare(api::Object object) const { return object; }
  /// All that it has. Asked when items of a list cannot be read: what is known of those stays, and
  /// is given to replace() with the rest of the list. Without it (none) such objects would be taken
  /// for deleted.
  virtual std::vector<api::Object> objects() const = 0;
};

/// Called when a list or watch failed, or a watch's connection was lost; the reflector then tries
/// again, after a pause or at once. The error is what was thrown: rest::TransportError,
/// api::StatusError, api::DecodeError ...
using WatchErrorHandler = std::function<void(std::string_view reflector, const std::exception&)>;

struct ReflectorOptions {
  /// For messages and metrics.
  LOOKOUT_OPTION std::string name = {};
  /// The listed type, for messages; by default the expected one: "apps/v1, Kind=Deployment".
  LOOKOUT_OPTION std::string type_description = {};
  /// The type that the source delivers. Objects of another kind in a watch are reported and left
  /// out, those in a list count as unreadable (Reflector); an empty kind lets everything pass.
  LOOKOUT_OPTION std::string expected_api_version = {};
  LOOKOUT_OPTION std::string expected_kind = {};
  /// How often the store's content is delivered again; 0: never.
  std::chrono::milliseconds resync_period{0};
  /// Asked each time before it is; empty: yes.
  LOOKOUT_OPTION std::function<bool()> should_resync = {};
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
  /// The default logs, as client-go's; the same again within half a minute for debugging only.
  LOOKOUT_OPTION WatchErrorHandler watch_error_handler = {};
  /// Null: the machine's clock.
  LOOKOUT_OPTION std::shared_ptr<Clock> clock = {};
};

/// Counters of a reflector; safe to read at any time.
struct ReflectorStats {
  /// The server was asked for the whole state, as a list or as a stream.
  std::atomic<std::uint64_t> lists{0};
  /// How many of those that succeeded were streams.
  std::atomic<std::uint64_t> streamed_lists{0};
  metrics::Summary list_seconds;  ///< of those that succeeded
  metrics::Summary list_items;
  metrics::Summary watch_seconds;
  metrics::Summary watch_items;
  /// A stream was silent for a while without having announced the end of the initial events.
  std::atomic<std::uint64_t> late_initial_events{0};
  /// Streams that differed from a list (ReflectorOptions::check_consistency).
  std::atomic<std::uint64_t> inconsistencies{0};
  std::atomic<std::uint64_t> watches{0};
  std::atomic<std::uint64_t> short_watches{0};
  std::atomic<std::uint64_t> events{0};
  std::atomic<std::uint64_t> bookmarks{0};
  std::atomic<std::uint64_t> errors{0};
  /// Objects that were left out: malformed, nameless or of a wrong kind.
  std::atomic<std::uint64_t> skipped{0};
  /// Those in the last list; the store keeps its older versions of them.
  std::atomic<std::uint64_t> unreadable{0};
};

/// Why a reflector does not follow the server.
struct ReflectorFailure {
  LOOKOUT_OPTION std::string message = {};
  int status = 0;  ///< of the server's answer (HTTP); 0: there was none
  Clock::TimePoint at{};
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
/// if the server says so (Retry-After). A connection that is refused costs nobody anything: it is
/// tried again after about a second, however often that has been.
///
/// An unreadable object is never taken for a deleted one. A list item that cannot be decoded, or
/// has an unexpected kind, keeps its last known state; if its name cannot be read either, that list
/// deletes nothing. The reflector then reports it (live() is false, the error handler is called,
/// ReflectorStats::unreadable), goes on watching, and lists again until it can read everything:
/// first after 0.8 s, finally every five minutes (BackoffOptions). An event that cannot be decoded
/// ends the watch and leads to a new list.
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
  Awaitable<void> run(std::stop_token stop);

  /// The resourceVersion up to which the store has been brought; empty before the first list. From
  /// any thread, as all below.
  std::string last_sync_resource_version() const;
  /// When the server last gave a sign of life: an answer, an event, a bookmark.
  Clock::TimePoint last_activity() const;
  /// How long ago that was.
  Clock::Duration staleness() const { return clock_->now() - last_activity(); }
  /// Whether the store follows the server: the first list is there, and since the last failure of a
  /// list or a watch another one has worked. False while the server cannot be reached, while a new
  /// list is needed, and while there are objects that cannot be read.
  bool live() const { return live_since().has_value(); }
  /// Since when; nothing if it does not.
  std::optional<Clock::TimePoint> live_since() const;
  /// The last failure of a list or a watch; nothing if one has worked since.
  std::optional<ReflectorFailure> last_failure() const;
  const ReflectorStats& stats() const LOOKOUT_LIFETIME_BOUND { return stats_; }
  const std::string& name() const LOOKOUT_LIFETIME_BOUND { return options_.name; }
  /// "v1, Kind=Pod"; "<unspecified>" if everything is taken.
  const std::string& type_description() const LOOKOUT_LIFETIME_BOUND {
    return options_.type_description;
  }

 private:
  class OpenWatch;
  Reflector(std::shared_ptr<ListerWatcher> source, ReflectorStore& store, ReflectorOptions options);

  Awaitable<void> resync_loop(std::stop_token stop);
  Awaitable<void> list_and_watch(std::stop_token stop, Backoff& backoff);
  /// Follows the changes until it is time for another list.
  Awaitable<void> watch_for_a_while(std::stop_token stop, Backoff& backoff);
  Awaitable<void> stop_after(Clock::Duration wait, std::stop_source what, std::stop_token stop);

  /// The watch that brought the state and goes on, or nothing if there is to be a list.
  Awaitable<std::unique_ptr<OpenWatch>> stream_state(std::stop_token stop);
  Awaitable<bool> read_initial_events(OpenWatch& watch, InitialEvents& initial,
                                      Unreadable& unreadable, std::string& resource_version,
                                      std::stop_token stop);
  Awaitable<void> warn_of_silence(std::shared_ptr<const Silence> silence, std::stop_token stop);
  Awaitable<void> check_consistency(const std::vector<api::Object>& streamed,
                                    const std::string& resource_version, std::stop_token stop);

  Awaitable<void> list(std::stop_token stop);
  Awaitable<std::string> list_pages(rest::ListOptions options, std::vector<api::Object>& items,
                                    Unreadable& unreadable, std::stop_token stop);
  /// This is the whole state, but for what could not be read of it.
  void replace(std::vector<api::Object> objects, const Unreadable& unreadable,
               std::string resource_version, Clock::TimePoint begin);

  Awaitable<std::unique_ptr<OpenWatch>> open_watch(rest::ListOptions options, std::stop_token stop);
  Awaitable<void> watch(std::unique_ptr<OpenWatch> watch, std::stop_token stop, Backoff& backoff);
  Awaitable<bool> read(OpenWatch& watch);
  Awaitable<void> follow(OpenWatch& watch, std::stop_token stop);

  /// Whether an event is one to be taken; throws if it is an error. An object that is not is noted
  /// in `unreadable`, if given.
  bool check(const api::WatchEvent& event, Unreadable* unreadable);
  /// Hands an event to the store; false if it was left out.
  bool take(const api::WatchEvent& event, const Watcher& watcher);
  bool acceptable(const api::Object& object, std::string_view where, Unreadable* unreadable);
  void handle_error(const std::exception& error);
  void note_failure(const std::exception& error);
  std::string relist_resource_version() const;
  void set_last_sync(std::string resource_version);
  void note_activity();
  void set_live(bool live);
  /// The wait after a failure.
  Clock::Duration pause_after(const std::exception& error, Backoff& backoff);
  void log_error(const std::exception& error);

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
  bool complete_ = true;  // all of the last state could be read
  Backoff refused_backoff_;
  Backoff unreadable_backoff_;
  std::string logged_error_;  // the last one
  Clock::TimePoint logged_at_{};
  bool ordered_ = true;  // events come in the order of their resourceVersions
  std::minstd_rand random_;

  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::string last_sync_resource_version_;
  std::unique_ptr<const ReflectorFailure> failure_;
  std::atomic<Clock::TimePoint> last_activity_;
  std::atomic<Clock::TimePoint> live_since_{kNotLive};
};

}  // namespace lookout::cache
