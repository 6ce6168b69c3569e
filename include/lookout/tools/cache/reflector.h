// Reflector: keeps a store in sync with the server.
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
#include <unordered_set>
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
class RepeatedError;
class Unreadable;
struct Silence;

/// The store of a reflector (client-go's ReflectorStore). Called on the reflector's strand.
class ReflectorStore {
 public:
  virtual ~ReflectorStore() = default;

  virtual void add(const api::Object& object) = 0;
  virtual void update(const api::Object& object) = 0;
  virtual void remove(const api::Object& object) = 0;
  /// Like remove(), for an object whose deletion was missed (Watcher::missed()).
  virtual void remove_missed(const api::Object& last) { remove(last); }
  /// Replaces the whole content.
  virtual void replace(std::vector<api::Object> objects, const std::string& resource_version) = 0;
  /// Delivers every object again.
  virtual void resync() = 0;
  /// Ends a batch of changes. The store now has the server's state at this resourceVersion.
  virtual void flush(const std::string& resource_version) = 0;
  /// Prepares an item of a list: returns the object to store. It is transformed; if the store
  /// already has the same object, it is the stored handle, so that an unchanged list takes no extra
  /// memory. Called once for each item, on any thread, while the list arrives. replace() receives
  /// the results; an empty handle means that there is nothing to keep.
  virtual api::Object prepare(api::Object object) const { return object; }
  /// All stored objects. Used if items of a list cannot be read: their known versions are passed to
  /// replace() with the rest of the list. Without them, replace() would delete these objects.
  virtual std::vector<api::Object> objects() const = 0;
  /// A list or a watch failed. Called before the watch error handler, and for failures that are
  /// only logged.
  virtual void failed(const std::exception& error) { static_cast<void>(error); }
};

/// Called when a list or watch failed, or a watch's connection was lost; the reflector then
/// retries, after a pause or immediately. The error is the exception: rest::TransportError,
/// api::StatusError, api::DecodeError ...
using WatchErrorHandler = std::function<void(std::string_view reflector, const std::exception&)>;

struct ReflectorOptions {
  /// For messages and metrics.
  LOOKOUT_OPTION std::string name = {};
  /// The listed type, for messages; by default the expected one: "apps/v1, Kind=Deployment".
  LOOKOUT_OPTION std::string type_description = {};
  /// The type that the source delivers. Objects of another kind are reported and skipped in a
  /// watch, and count as unreadable in a list (Reflector). An empty kind accepts everything.
  LOOKOUT_OPTION std::string expected_api_version = {};
  LOOKOUT_OPTION std::string expected_kind = {};
  /// How often the store's content is delivered again; 0: never.
  std::chrono::milliseconds resync_period{0};
  /// Called before each resync, which it allows by returning true; empty: always.
  LOOKOUT_OPTION std::function<bool()> should_resync = {};
  /// Lets the server stream the state as the first events of a watch (client-go's WatchList), if
  /// the source supports it, instead of listing page by page. If the server refuses, the reflector
  /// lists.
  bool use_watch_list = true;
  /// The first list requests the newest state (resourceVersion "") instead of any state in the
  /// server's cache ("0"), so that a restarted program never sees an older state than before. Servers
  /// before 1.31 read from etcd for it. A watch list always delivers the newest state.
  bool newest_first_list = false;
  /// Compares the streamed state with a list of the same version. For tests of servers: it costs an
  /// extra list each time. A difference is counted and reported to the watch error handler.
  bool check_consistency = false;
  /// Items per page of a paginated list; 0: client-go's rules.
  std::int64_t page_size = 0;
  /// The timeout of each watch is random, between this value and twice as much.
  std::chrono::seconds min_watch_timeout{300};
  BackoffOptions backoff = {};
  /// For this time after the first internal error (500) of a watch, the same watch is retried;
  /// after that, or always if it is 0, the reflector lists again.
  std::chrono::milliseconds max_internal_error_retry{0};
  /// The default logs as client-go does; repetitions within half a minute at debug level only
  /// (the query of a URL makes no difference).
  LOOKOUT_OPTION WatchErrorHandler watch_error_handler = {};
  /// Null: the machine's clock.
  LOOKOUT_OPTION std::shared_ptr<Clock> clock = {};
};

/// Counters of a reflector; safe to read at any time.
struct ReflectorStats {
  /// Requests for the whole state, as a list or as a stream.
  std::atomic<std::uint64_t> lists{0};
  /// The number of successful ones that were streams.
  std::atomic<std::uint64_t> streamed_lists{0};
  metrics::Summary list_seconds;  ///< successful lists only
  metrics::Summary list_items;
  metrics::Summary watch_seconds;
  metrics::Summary watch_items;
  /// Streams that fell silent before the end of the initial events.
  std::atomic<std::uint64_t> late_initial_events{0};
  /// Streams that differed from a list (ReflectorOptions::check_consistency).
  std::atomic<std::uint64_t> inconsistencies{0};
  std::atomic<std::uint64_t> watches{0};
  std::atomic<std::uint64_t> short_watches{0};
  std::atomic<std::uint64_t> events{0};
  std::atomic<std::uint64_t> bookmarks{0};
  std::atomic<std::uint64_t> errors{0};
  /// Objects that were skipped: malformed, without a name or of a wrong kind.
  std::atomic<std::uint64_t> skipped{0};
  /// Unreadable objects in the last list; the store keeps its older versions of them.
  std::atomic<std::uint64_t> unreadable{0};
};

/// Fetches the whole state, then watches for changes, and resumes from the last known version after
/// a failure: client-go's Reflector, with its rules.
///
/// The state arrives as the first events of a watch (sendInitialEvents), which then continues with
/// changes. Servers that refuse this are listed page by page. In both cases the store is replaced
/// only once the state is complete.
///
/// A coroutine on one strand. After a watch has ended normally, its connection broke, or the server
/// asked to open it later (429, Retry-After), it watches again from the last resourceVersion
/// (bookmarks count). After 410 Gone and other errors it fetches the whole state again. After a
/// failure it waits according to BackoffOptions, or longer if the server asks for it, up to two
/// minutes. A refused connection costs the server nothing: it is retried after about a second,
/// however often it fails.
///
/// An unreadable object is never mistaken for a deleted one. A list item that cannot be decoded, or
/// has an unexpected kind, keeps its last known state; if its name cannot be read either, that list
/// deletes nothing. The reflector then reports the problem (live() is false, the error handler is
/// called, ReflectorStats::unreadable), continues to watch, and lists again until everything is
/// readable: first after 0.8 s, finally every five minutes (BackoffOptions). An event that cannot
/// be decoded ends the watch and leads to a new list.
class Reflector : public std::enable_shared_from_this<Reflector> {
 public:
  /// `store` must outlive run().
  static std::shared_ptr<Reflector> create(std::shared_ptr<ListerWatcher> source,
                                           ReflectorStore& store, ReflectorOptions options);
  ~Reflector();
  Reflector(const Reflector&) = delete;
  Reflector& operator=(const Reflector&) = delete;

  /// Overrides an option. Only before run().
  void set_resync_period(std::chrono::milliseconds period) {
    options_.resync_period = Clock::limited(period);
  }
  void set_watch_error_handler(WatchErrorHandler handler) {
    options_.watch_error_handler = std::move(handler);
  }

  /// Runs until a stop is requested, and until its watch has ended (Watcher::end()). Await it once,
  /// on a strand.
  Awaitable<void> run(std::stop_token stop);

  /// The resourceVersion that the store has reached; empty before the first list. Safe from any
  /// thread, like all functions below.
  std::string last_sync_resource_version() const;
  /// The time of the server's last sign of life: an answer, an event, a bookmark.
  Clock::TimePoint last_activity() const;
  /// The time since last_activity().
  Clock::Duration staleness() const { return clock_->now() - last_activity(); }
  /// True if the store is in sync with the server: the first list is complete, and another list or
  /// watch has succeeded since the last failure. False while the server is unreachable, while a new
  /// list is needed, and while there are unreadable objects. If there are reflectors behind the
  /// source (MultiNamespaceSource), all of them must be live.
  bool live() const { return live_since().has_value(); }
  /// The start of the live state; empty if the reflector is not live.
  std::optional<Clock::TimePoint> live_since() const;
  /// The last failure of a list or a watch; empty if one has succeeded since. Also a failure of the
  /// reflectors behind the source, if it is newer.
  std::optional<ReflectorFailure> last_failure() const;
  /// Counters. `errors` and `unreadable` include those of the reflectors behind the source, as they
  /// are at the time of this call.
  const ReflectorStats& stats() const LOOKOUT_LIFETIME_BOUND;
  /// The keys of the objects that exist, but could not be read in the last list; an empty key stands
  /// for objects whose names could not be read either. Null if there are none. Ask before the store is
  /// read: that the store lacks one of them does not mean that it does not exist. Does not know the
  /// reflectors behind the source.
  std::shared_ptr<const std::unordered_set<std::string>> unreadable_keys() const;
  const std::string& name() const LOOKOUT_LIFETIME_BOUND { return options_.name; }
  /// "v1, Kind=Pod"; "<unspecified>" if every type is accepted.
  const std::string& type_description() const LOOKOUT_LIFETIME_BOUND {
    return options_.type_description;
  }

 private:
  class OpenWatch;
  Reflector(std::shared_ptr<ListerWatcher> source, ReflectorStore& store, ReflectorOptions options);

  Awaitable<void> resync_loop(std::stop_token stop);
  // `open` is the watch, or null. run() owns it and always ends it.
  Awaitable<void> list_and_watch(std::unique_ptr<OpenWatch>& open, std::stop_token stop,
                                 Backoff& backoff);
  /// Follows the changes until another list is due.
  Awaitable<void> watch_for_a_while(std::unique_ptr<OpenWatch>& open, std::stop_token stop,
                                    Backoff& backoff);
  Awaitable<void> stop_after(Clock::Duration wait, std::stop_source what, std::stop_token stop);

  /// Leaves the watch that delivered the state and continues, or null if a list is needed.
  Awaitable<void> stream_state(std::unique_ptr<OpenWatch>& open, std::stop_token stop);
  Awaitable<bool> read_initial_events(OpenWatch& watch, InitialEvents& initial,
                                      Unreadable& unreadable, std::string& resource_version,
                                      std::stop_token stop);
  Awaitable<void> warn_of_silence(std::shared_ptr<const Silence> silence, std::stop_token stop);
  Awaitable<void> check_consistency(const std::vector<api::Object>& streamed,
                                    const std::string& resource_version, std::stop_token stop);

  Awaitable<void> list(std::stop_token stop);
  Awaitable<std::string> list_pages(rest::ListOptions options, std::vector<api::Object>& items,
                                    Unreadable& unreadable, std::stop_token stop);
  /// Replaces the store's content, keeping known versions of unreadable objects.
  void replace(std::vector<api::Object> objects, const Unreadable& unreadable,
               std::string resource_version, Clock::TimePoint begin);

  Awaitable<std::unique_ptr<OpenWatch>> open_watch(rest::ListOptions options, std::stop_token stop);
  Awaitable<void> watch(std::unique_ptr<OpenWatch>& open, std::stop_token stop, Backoff& backoff);
  static Awaitable<void> end_watch(std::unique_ptr<OpenWatch>& open);
  Awaitable<bool> read(OpenWatch& watch);
  Awaitable<void> follow(OpenWatch& watch, std::stop_token stop);

  /// True if the event is valid; throws if it is an error. Records an invalid object in
  /// `unreadable`, if given.
  bool check(const api::WatchEvent& event, Unreadable* unreadable);
  /// Applies an event to the store; false if it was skipped.
  bool take(const api::WatchEvent& event, const Watcher& watcher);
  bool acceptable(const api::Object& object, std::string_view where, Unreadable* unreadable);
  void handle_error(const std::exception& error);
  void note_failure(const std::exception& error);
  std::string relist_resource_version() const;
  void set_last_sync(std::string resource_version);
  void note_activity();
  void set_live(bool live);
  void set_unreadable_keys(std::unordered_set<std::string> keys);
  /// A watch has delivered these objects.
  void forget_unreadable(const std::vector<std::string>& keys);
  /// The wait after a failure.
  Clock::Duration pause_after(const std::exception& error, Backoff& backoff);
  void log_error(const std::exception& error);

  static constexpr Clock::TimePoint kNotLive = Clock::TimePoint::min();

  const std::shared_ptr<ListerWatcher> source_;
  ReflectorStore& store_;
  ReflectorOptions options_;  // constant after run() starts
  const std::shared_ptr<Clock> clock_;
  mutable ReflectorStats stats_;

  // On the strand.
  std::string resource_version_;
  bool resource_version_unavailable_ = false;  // the server no longer, or not yet, has it
  bool paginated_ = false;  // the server paginates even lists that its cache could serve
  bool listed_ = false;
  bool complete_ = true;                     // the last state was fully readable
  std::vector<std::string> readable_again_;  // not flushed yet; only while !complete_
  Backoff refused_backoff_;
  Backoff unreadable_backoff_;
  const std::unique_ptr<RepeatedError> logged_;
  bool ordered_ = true;  // events arrive in the order of their resourceVersions
  std::minstd_rand random_;

  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::string last_sync_resource_version_;
  std::unique_ptr<const ReflectorFailure> failure_;
  std::shared_ptr<const std::unordered_set<std::string>> unreadable_keys_;  // null: none
  // The source's share of stats_.
  mutable std::uint64_t source_errors_ = 0;
  mutable std::uint64_t source_unreadable_ = 0;
  std::atomic<Clock::TimePoint> last_activity_;
  std::atomic<Clock::TimePoint> live_since_{kNotLive};
  std::atomic<bool> has_unreadable_{false};  // written with mutex_ held
};

}  // namespace lookout::cache
