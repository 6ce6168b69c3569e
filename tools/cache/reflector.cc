#include "lookout/tools/cache/reflector.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <map>
#include <utility>

#include "lookout/api/error.h"
#include "lookout/api/status.h"
#include "lookout/base/async_event.h"
#include "lookout/base/detail/log.h"
#include "lookout/tools/cache/detail/repeated_error.h"
#include "tools/cache/initial_events.h"
#include "tools/cache/retry_after.h"
#include "tools/cache/retry_with_deadline.h"
#include "tools/cache/side_task.h"
#include "tools/cache/unreadable.h"

namespace lookout::cache {

/// The progress of a stream of initial events.
struct Silence {
  Clock::TimePoint begin;
  std::optional<Clock::TimePoint> last_event;
};

/// A watch, with the events that have arrived but have not been processed.
class Reflector::OpenWatch {
 public:
  OpenWatch(std::unique_ptr<Watcher> watcher_, Clock::TimePoint begin_)
      : watcher(std::move(watcher_)), begin(begin_) {}

  bool has_events() const { return next < events.size(); }
  /// False at the end of the watch.
  Awaitable<bool> read() {
    next = 0;
    events.clear();
    co_return co_await watcher->next(events);
  }

  const std::unique_ptr<Watcher> watcher;
  const Clock::TimePoint begin;
  std::vector<api::WatchEvent> events;
  std::size_t next = 0;
  std::uint64_t count = 0;  // useful events
};

namespace {

// The page size of paginated lists (client-go's pager).
constexpr std::int64_t kDefaultPageSize = 500;

/// A watch that ended immediately without events: an immediate new watch would be a busy loop.
class VeryShortWatch : public Error {
 public:
  using Error::Error;
};

/// An internal error after this time without one counts as the first again.
constexpr std::chrono::minutes kInternalErrorReset{1};

bool is_expired(const std::exception& e) { return api::is_resource_expired(e) || api::is_gone(e); }

/// The server no longer has the resourceVersion, or does not have it yet.
bool is_unavailable(const std::exception& e) {
  return is_expired(e) || api::is_too_large_resource_version(e);
}

/// A Table is for display and does not contain the objects themselves.
bool is_table(std::string_view api_version, std::string_view kind) {
  return kind == "Table" && api_version.starts_with("meta.k8s.io/");
}

bool ends_initial_events(const api::Object& bookmark) {
  return bookmark.annotations()[api::kInitialEventsEndAnnotation].as_string() == "true";
}

ReflectorOptions completed(ReflectorOptions options) {
  options.resync_period = Clock::limited(options.resync_period);
  options.min_watch_timeout = Clock::limited(options.min_watch_timeout);
  options.max_internal_error_retry = Clock::limited(options.max_internal_error_retry);
  options.backoff.max = Clock::limited(options.backoff.max);  // it is multiplied
  if (options.type_description.empty()) {
    options.type_description =
        options.expected_kind.empty()
            ? "<unspecified>"
            : fmt::format("{}, Kind={}", options.expected_api_version, options.expected_kind);
  }
  return options;
}

/// The server asks to repeat the request later.
bool asks_to_wait(const std::exception& e) {
  return !is_unavailable(e) && wait_asked_for(e).count() > 0;
}

double seconds(Clock::Duration duration) { return std::chrono::duration<double>(duration).count(); }

/// The back-off for refused connections: frequent attempts cost an absent server nothing.
BackoffOptions for_refused(BackoffOptions options) {
  options.max = options.initial;
  return options;
}

/// The back-off for unreadable objects: lists are expensive, and the watch continues between them.
BackoffOptions for_unreadable(BackoffOptions options) {
  options.max *= 10;
  options.reset_after = std::max(options.reset_after, 4 * options.max);
  return options;
}

}  // namespace

std::shared_ptr<Reflector> Reflector::create(std::shared_ptr<ListerWatcher> source,
                                             ReflectorStore& store, ReflectorOptions options) {
  if (!source) throw InvalidArgument("a reflector needs a source");
  return std::shared_ptr<Reflector>(new Reflector(std::move(source), store, std::move(options)));
}

Reflector::Reflector(std::shared_ptr<ListerWatcher> source, ReflectorStore& store,
                     ReflectorOptions options)
    : source_(std::move(source)),
      store_(store),
      options_(completed(std::move(options))),
      clock_(options_.clock ? options_.clock : Clock::real()),
      refused_backoff_(for_refused(options_.backoff), clock_),
      unreadable_backoff_(for_unreadable(options_.backoff), clock_),
      logged_(std::make_unique<RepeatedError>(clock_)),
      random_(std::random_device{}()),
      last_activity_(clock_->now()) {}

Reflector::~Reflector() = default;

Awaitable<void> Reflector::run(std::stop_token stop) {
  const auto self = shared_from_this();
  const auto executor = co_await boost::asio::this_coro::executor;
  std::optional<SideTask> resync;
  if (options_.resync_period.count() > 0) {
    resync.emplace(executor, stop, self,
                   [this](std::stop_token over) { return resync_loop(std::move(over)); });
  }
  Backoff backoff(options_.backoff, clock_);
  std::unique_ptr<OpenWatch> open;
  while (!stop.stop_requested()) {
    std::optional<Clock::Duration> pause;
    try {
      co_await list_and_watch(open, stop, backoff);
    } catch (const std::exception& e) {
      set_live(false);
      if (!stop.stop_requested()) handle_error(e);
      pause = pause_after(e, backoff);
    } catch (...) {
      set_live(false);
      handle_error(Error("something was thrown that is not a std::exception"));
    }
    co_await end_watch(open);
    const Clock::Duration wait = pause ? *pause : backoff.next();
    co_await clock_->sleep(wait, stop);
  }
  set_live(false);
  if (resync) co_await resync->end();
}

Clock::Duration Reflector::pause_after(const std::exception& error, Backoff& backoff) {
  Backoff& used = rest::is_connection_refused(error) ? refused_backoff_ : backoff;
  return std::max(used.next(), wait_asked_for(error));
}

Awaitable<void> Reflector::resync_loop(std::stop_token stop) {
  for (;;) {
    const bool due = co_await clock_->sleep(options_.resync_period, stop);
    if (!due) break;
    if (!listed_) continue;
    try {
      if (options_.should_resync && !options_.should_resync()) continue;
      store_.resync();
      store_.flush(resource_version_);
    } catch (const std::exception& e) {
      handle_error(e);
    } catch (...) {
      handle_error(Error("something was thrown that is not a std::exception"));
    }
  }
}

Awaitable<void> Reflector::end_watch(std::unique_ptr<OpenWatch>& open) {
  const auto ending = std::move(open);
  if (ending) co_await ending->watcher->end();
}

Awaitable<void> Reflector::list_and_watch(std::unique_ptr<OpenWatch>& open, std::stop_token stop,
                                          Backoff& backoff) {
  while (!stop.stop_requested()) {
    if (options_.use_watch_list && source_->supports_watch_list()) {
      co_await stream_state(open, stop);
      if (stop.stop_requested()) co_return;
    }
    if (!open) co_await list(stop);
    if (complete_) {
      unreadable_backoff_.reset();
      co_await watch(open, stop, backoff);
      co_return;
    }
    co_await end_watch(open);
    co_await watch_for_a_while(open, stop, backoff);
  }
}

Awaitable<void> Reflector::watch_for_a_while(std::unique_ptr<OpenWatch>& open, std::stop_token stop,
                                             Backoff& backoff) {
  const auto executor = co_await boost::asio::this_coro::executor;
  std::stop_source enough;
  const std::stop_callback forward(stop, [&enough] { enough.request_stop(); });
  const auto ring = [this, enough](std::stop_token over) -> Awaitable<void> {
    return stop_after(unreadable_backoff_.next(), enough, std::move(over));
  };
  SideTask timer(executor, stop, shared_from_this(), ring);
  std::exception_ptr failed;
  try {
    co_await watch(open, enough.get_token(), backoff);
  } catch (...) {
    failed = std::current_exception();
  }
  co_await timer.end();
  if (failed) std::rethrow_exception(failed);
}

Awaitable<void> Reflector::stop_after(Clock::Duration wait, std::stop_source what,
                                      std::stop_token stop) {
  const bool slept = co_await clock_->sleep(wait, std::move(stop));
  if (slept) what.request_stop();
}

void Reflector::replace(std::vector<api::Object> objects, const Unreadable& unreadable,
                        std::string resource_version, Clock::TimePoint begin) {
  unreadable.keep_known(objects, store_);
  complete_ = unreadable.empty();
  {
    const std::lock_guard lock(mutex_);
    stats_.unreadable.store(unreadable.count() + source_unreadable_, std::memory_order_relaxed);
  }
  if (!complete_) {
    const std::string example = unreadable.example();
    handle_error(
        Error(fmt::format("{} of the server's objects cannot be read{}{}; the store keeps their "
                          "last known state, and the list will be repeated",
                          unreadable.count(), example.empty() ? "" : ", one is ", example)));
  }
  stats_.list_seconds.observe(seconds(clock_->now() - begin));
  stats_.list_items.observe(static_cast<double>(objects.size()));
  resource_version_unavailable_ = false;
  listed_ = true;
  resource_version_ = resource_version;
  // Until readers see the list, those of the list before it count, too.
  std::unordered_set<std::string> keys = unreadable.keys();
  std::unordered_set<std::string> now_and_before = keys;
  if (const auto before = unreadable_keys()) now_and_before.insert(before->begin(), before->end());
  set_unreadable_keys(std::move(now_and_before));
  readable_again_.clear();
  store_.replace(std::move(objects), resource_version);
  // Before handlers receive objects of the list.
  set_live(true);
  store_.flush(resource_version);
  set_unreadable_keys(std::move(keys));
  set_last_sync(std::move(resource_version));
}

// ---------------------------------------------------------------------------------------------
// watch list

Awaitable<void> Reflector::stream_state(std::unique_ptr<OpenWatch>& open, std::stop_token stop) {
  int cut_short = 0;
  while (!stop.stop_requested()) {
    rest::ListOptions options;
    // Without a version, the server sends the newest state. ("0" would not reduce its load: it
    // streams from its cache in any case.)
    if (!resource_version_unavailable_) options.resource_version = resource_version_;
    options.resource_version_match = "NotOlderThan";
    options.send_initial_events = true;
    stats_.lists.fetch_add(1, std::memory_order_relaxed);
    bool again = true;
    try {
      open = co_await open_watch(std::move(options), stop);
      InitialEvents initial;
      Unreadable unreadable;
      std::string resource_version;
      const bool complete =
          co_await read_initial_events(*open, initial, unreadable, resource_version, stop);
      if (complete) {
        std::vector<api::Object> objects = initial.take();
        if (options_.check_consistency) co_await check_consistency(objects, resource_version, stop);
        stats_.streamed_lists.fetch_add(1, std::memory_order_relaxed);
        ordered_ = true;  // later events arrive in the order of resourceVersions
        replace(std::move(objects), unreadable, std::move(resource_version), open->begin);
        co_return;
      }
      // The server ended the watch before the state was complete. Retry once.
      if (open->count == 0 || ++cut_short == 2) {
        log::debug("{}: the stream ended before the end of its initial events, listing instead",
                   name());
        again = false;
      }
    } catch (const std::exception& e) {
      if (stop.stop_requested()) co_return;
      again = is_unavailable(e) && !std::exchange(resource_version_unavailable_, true);
      // A server that is unreachable or busy would not answer a list either.
      if (rest::is_transient(e) || api::is_too_many_requests(e) || (!open && asks_to_wait(e)))
        throw;
      if (!again) {
        log::debug("{}: the server does not stream its state, listing instead: {}", name(),
                   e.what());
      }
    }
    co_await end_watch(open);
    if (!again) co_return;
  }
}

Awaitable<bool> Reflector::read_initial_events(OpenWatch& watch, InitialEvents& initial,
                                               Unreadable& unreadable,
                                               std::string& resource_version,
                                               std::stop_token stop) {
  const auto executor = co_await boost::asio::this_coro::executor;
  const auto silence = std::make_shared<Silence>(Silence{watch.begin, {}});
  SideTask warning(executor, stop, shared_from_this(), [this, silence](std::stop_token over) {
    return warn_of_silence(silence, std::move(over));
  });
  bool complete = false;
  std::exception_ptr failed;
  try {
    while (!complete && !stop.stop_requested()) {
      const bool more = co_await read(watch);
      if (!more) break;
      note_activity();
      silence->last_event = clock_->now();
      while (!complete && watch.has_events()) {
        const api::WatchEvent& event = watch.events[watch.next++];
        if (!check(event, &unreadable)) continue;
        ++watch.count;
        if (event.type == api::EventType::kBookmark) {
          complete = ends_initial_events(event.object);
          if (complete) resource_version = event.object.resource_version();
        } else if (event.type == api::EventType::kDeleted) {
          initial.remove(event.object);
        } else {
          initial.put(store_.prepare(event.object), event.type == api::EventType::kAdded);
        }
      }
    }
  } catch (...) {
    failed = std::current_exception();
  }
  co_await warning.end();
  if (failed) std::rethrow_exception(failed);
  co_return complete;
}

Awaitable<void> Reflector::warn_of_silence(std::shared_ptr<const Silence> silence,
                                           std::stop_token stop) {
  auto patience = Clock::Duration(kInitialEventsPatience);
  for (;;) {
    const bool due = co_await clock_->sleep(patience, stop);
    if (!due) break;
    const auto now = clock_->now();
    const auto silent = now - silence->last_event.value_or(silence->begin);
    patience = kInitialEventsPatience;
    if (silent < kInitialEventsPatience) {
      patience -= silent;
      continue;
    }
    stats_.late_initial_events.fetch_add(1, std::memory_order_relaxed);
    log::warn("{}", initial_events_warning(name(), silence->begin, silence->last_event, now));
  }
}

Awaitable<void> Reflector::check_consistency(const std::vector<api::Object>& streamed,
                                             const std::string& resource_version,
                                             std::stop_token stop) {
  std::map<std::string, api::Object> missing;
  for (const auto& object : streamed) missing[object.key()] = object;
  std::string difference;
  auto on_item = [&](api::Object item) {
    if (!acceptable(item, "list", nullptr)) return;
    const std::string key = item.key();
    const api::Object kept = store_.prepare(std::move(item));
    const auto at = missing.find(key);
    if (!kept) {
      // The item is not kept, for example because a transform failed; the same holds for the streamed
      // object, unless an earlier version is kept.
      if (at != missing.end()) missing.erase(at);
    } else if (at == missing.end()) {
      difference = fmt::format("{} was not streamed", key);
    } else {
      if (at->second != kept) difference = fmt::format("{} was streamed with other content", key);
      missing.erase(at);
    }
  };
  try {
    rest::ListOptions options;
    options.resource_version = resource_version;
    options.resource_version_match = "Exact";
    co_await source_->list(on_item, options, stop);
  } catch (const std::exception& e) {
    // The server may have compacted this version by now.
    log::debug("{}: cannot check the consistency of a stream: {}", name(), e.what());
    co_return;
  }
  if (difference.empty() && !missing.empty())
    difference = fmt::format("{} was streamed, but is not in the list", missing.begin()->first);
  if (difference.empty()) co_return;
  stats_.inconsistencies.fetch_add(1, std::memory_order_relaxed);
  handle_error(Error(fmt::format("the stream at resourceVersion {} differs from the list: {}",
                                 resource_version, difference)));
}

// ------------------------------------------------------------------------------------------
// listing

std::string Reflector::relist_resource_version() const {
  // "" requests the newest state from etcd, if the known version is too old or too new.
  if (resource_version_unavailable_) return "";
  if (!resource_version_.empty()) return resource_version_;
  // "0" lets the server answer from its cache.
  return options_.newest_first_list ? "" : "0";
}

Awaitable<void> Reflector::list(std::stop_token stop) {
  const auto begin = clock_->now();
  std::vector<api::Object> items;
  Unreadable unreadable;
  std::string resource_version;
  for (bool again = true; again;) {
    again = false;
    items.clear();
    unreadable.clear();
    rest::ListOptions options;
    options.resource_version = relist_resource_version();
    try {
      resource_version = co_await list_pages(options, items, unreadable, stop);
    } catch (const std::exception& e) {
      if (!is_unavailable(e) || resource_version_unavailable_) throw;
      resource_version_unavailable_ = true;
      again = true;
    }
  }
  replace(std::move(items), unreadable, std::move(resource_version), begin);
}

Awaitable<std::string> Reflector::list_pages(rest::ListOptions options,
                                             std::vector<api::Object>& items,
                                             Unreadable& unreadable, std::stop_token stop) {
  const std::string requested = options.resource_version;
  if (options_.page_size > 0) {
    options.limit = options_.page_size;
  } else if (paginated_ || requested.empty() || requested == "0") {
    options.limit = kDefaultPageSize;
  }
  // (Otherwise the server's cache serves the whole list, and pages would make it read from etcd.)
  auto on_item = [&](api::Object item) {
    if (acceptable(item, "list", &unreadable)) items.push_back(store_.prepare(std::move(item)));
  };
  stats_.lists.fetch_add(1, std::memory_order_relaxed);
  bool paged = false;       // the server has made pages
  bool continuing = false;  // this request asks for the next one
  for (;;) {
    rest::ListMeta meta;
    bool expired = false;
    try {
      meta = co_await source_->list(on_item, options, stop);
    } catch (const std::exception& e) {
      if (!continuing || !is_expired(e)) throw;
      expired = true;
    }
    note_activity();
    if (expired) {
      // The continue token has expired: list everything at once.
      items.clear();
      unreadable.clear();
      options.limit = 0;
      options.continue_token.clear();
      options.resource_version = requested;
      continuing = false;
      continue;
    }
    if (is_table(meta.api_version, meta.kind)) {
      throw Error(fmt::format("the list of {} is a {} {}, which holds no objects",
                              options_.type_description, meta.api_version, meta.kind));
    }
    stats_.skipped.fetch_add(meta.malformed_items, std::memory_order_relaxed);
    for (std::size_t i = 0; i < meta.malformed_items; ++i)
      unreadable.add(i < meta.malformed_keys.size() ? meta.malformed_keys[i] : std::string());
    if (meta.continue_token.empty()) {
      if (requested == "0" && paged) paginated_ = true;
      co_return meta.resource_version;
    }
    options.continue_token = meta.continue_token;
    options.resource_version.clear();
    options.resource_version_match.clear();
    paged = true;
    continuing = true;
  }
}

// -----------------------------------------------------------------------------------------
// watching

Awaitable<std::unique_ptr<Reflector::OpenWatch>> Reflector::open_watch(rest::ListOptions options,
                                                                       std::stop_token stop) {
  options.allow_watch_bookmarks = true;
  std::uniform_real_distribution<double> spread(1.0, 2.0);
  options.timeout = std::chrono::seconds(static_cast<std::int64_t>(
      static_cast<double>(options_.min_watch_timeout.count()) * spread(random_)));
  // Before the request, because some proxies delay the response until there is an event.
  const auto begin = clock_->now();
  stats_.watches.fetch_add(1, std::memory_order_relaxed);
  auto watcher = co_await source_->watch(std::move(options), stop);
  note_activity();
  co_return std::make_unique<OpenWatch>(std::move(watcher), begin);
}

Awaitable<void> Reflector::watch(std::unique_ptr<OpenWatch>& open, std::stop_token stop,
                                 Backoff& backoff) {
  RetryWithDeadline internal_errors(options_.max_internal_error_retry, kInternalErrorReset,
                                    api::is_internal_error, clock_);
  while (!stop.stop_requested()) {
    Clock::Duration wait{};
    try {
      if (!open) {
        rest::ListOptions options;
        options.resource_version = resource_version_;
        // Without a version or from "0", the existing objects come first, in no order.
        ordered_ = !resource_version_.empty() && resource_version_ != "0";
        open = co_await open_watch(std::move(options), stop);
        set_live(true);
      }
      co_await follow(*open, stop);
    } catch (const std::exception& e) {
      if (!stop.stop_requested()) {
        internal_errors.failed(e);
        // The server's history has been reset: a list from this version would fail, too.
        if (api::is_too_large_resource_version(e)) resource_version_unavailable_ = true;
        // When an unreachable or busy server answers again, it most likely still has our
        // resourceVersion, so a new list is not needed.
        const bool busy = api::is_too_many_requests(e) ||
                          (api::is_internal_error(e) && internal_errors.should_retry());
        if (!busy && !rest::is_transient(e) && (open || !asks_to_wait(e))) throw;
        set_live(false);
        if (busy) {
          note_failure(e);
          log::debug("{}: {}", name(), e.what());
        } else {
          handle_error(e);
        }
        wait = pause_after(e, backoff);
      }
    }
    co_await end_watch(open);
    if (wait.count() > 0) co_await clock_->sleep(wait, stop);
  }
}

Awaitable<bool> Reflector::read(OpenWatch& watch) {
  try {
    co_return co_await watch.read();
  } catch (const api::DecodeError&) {
    stats_.skipped.fetch_add(1, std::memory_order_relaxed);
    throw;
  }
}

Awaitable<void> Reflector::follow(OpenWatch& watch, std::stop_token stop) {
  struct AtEnd {
    ~AtEnd() {
      reflector.stats_.watch_seconds.observe(seconds(reflector.clock_->now() - watch.begin));
      reflector.stats_.watch_items.observe(static_cast<double>(watch.count));
    }
    Reflector& reflector;
    OpenWatch& watch;
  } const at_end{*this, watch};

  const bool streamed_state = watch.count > 0;
  const std::string version_before = resource_version_;
  bool more = true;
  std::optional<rest::TransportError> broken;
  while (more && !stop.stop_requested()) {
    if (!watch.has_events()) {
      try {
        more = co_await read(watch);
      } catch (const rest::TransportError& e) {
        if (stop.stop_requested()) co_return;
        set_live(false);
        // The connection broke, perhaps within an event; complete events have been processed.
        broken = e;
        more = false;
      }
      if (!more || watch.events.empty()) continue;
      note_activity();
    }
    std::exception_ptr failed;
    try {
      while (watch.has_events()) {
        const api::WatchEvent& event = watch.events[watch.next++];
        watch.count += take(event, *watch.watcher) ? 1u : 0u;
      }
    } catch (...) {
      failed = std::current_exception();
    }
    // Events before an error still count.
    store_.flush(resource_version_);
    if (!readable_again_.empty()) forget_unreadable(std::exchange(readable_again_, {}));
    set_last_sync(resource_version_);
    if (failed) std::rethrow_exception(failed);
  }
  // Bookmarks and events that are known already bring nothing new: the next watch might be the same.
  const bool moved = !ordered_ || version_before.empty() || resource_version_ != version_before;
  const bool useful = streamed_state || (watch.count > 0 && moved);
  if (!useful && clock_->now() - watch.begin < std::chrono::seconds(1)) {
    stats_.short_watches.fetch_add(1, std::memory_order_relaxed);
    const std::chrono::duration<double> lasted = clock_->now() - watch.begin;
    throw VeryShortWatch(fmt::format("very short watch: closed after {:.1f} s, {} received{}",
                                     lasted.count(), watch.count == 0 ? "no events" : "nothing new",
                                     broken ? fmt::format(" ({})", broken->what()) : ""));
  }
  if (broken) handle_error(*broken);
}

bool Reflector::check(const api::WatchEvent& event, Unreadable* unreadable) {
  if (event.type == api::EventType::kError) {
    auto status = api::Status::from(event.object);
    if (!status) {
      throw Error(fmt::format("an error event without a Status but with {} {}",
                              event.object.api_version(), event.object.kind()));
    }
    throw api::StatusError(std::move(*status));
  }
  if (event.type == api::EventType::kBookmark) {
    stats_.bookmarks.fetch_add(1, std::memory_order_relaxed);
  } else {
    if (!acceptable(event.object, "watch", unreadable)) return false;
    stats_.events.fetch_add(1, std::memory_order_relaxed);
  }
  return true;
}

bool Reflector::take(const api::WatchEvent& event, const Watcher& watcher) {
  if (!check(event, nullptr)) return false;
  switch (event.type) {
    case api::EventType::kAdded:
      store_.add(event.object);
      break;
    case api::EventType::kModified:
      store_.update(event.object);
      break;
    case api::EventType::kDeleted:
      if (watcher.missed(event.object)) {
        store_.remove_missed(event.object);
      } else {
        store_.remove(event.object);
      }
      break;
    case api::EventType::kBookmark:
    case api::EventType::kError:
      break;
  }
  if (!complete_ && event.type != api::EventType::kBookmark)
    readable_again_.push_back(event.object.key());
  if (event.type != api::EventType::kAdded) ordered_ = true;
  if (ordered_ && !event.object.resource_version().empty())
    resource_version_ = event.object.resource_version();
  return true;
}

bool Reflector::acceptable(const api::Object& object, std::string_view where,
                           Unreadable* unreadable) {
  const bool expected = options_.expected_kind.empty()
                            ? !is_table(object.api_version(), object.kind())
                            : object.kind() == options_.expected_kind &&
                                  object.api_version() == options_.expected_api_version;
  if (expected && !object.name().empty()) return true;
  stats_.skipped.fetch_add(1, std::memory_order_relaxed);
  if (unreadable != nullptr) unreadable->add(object.name().empty() ? std::string() : object.key());
  if (!expected) {
    log::error("{}: expected {} in the {}, skipped {} {} {}", options_.name,
               options_.type_description, where, object.api_version(), object.kind(), object.key());
  } else {
    log::error("{}: skipped a {} without a name in the {}", options_.name, object.kind(), where);
  }
  return false;
}

void Reflector::handle_error(const std::exception& error) {
  note_failure(error);
  if (!options_.watch_error_handler) {
    log_error(error);
    return;
  }
  try {
    options_.watch_error_handler(options_.name, error);
  } catch (const std::exception& e) {
    log::error("{}: the watch error handler threw: {}", options_.name, e.what());
  } catch (...) {
    log::error("{}: the watch error handler threw", options_.name);
  }
}

void Reflector::note_failure(const std::exception& error) {
  stats_.errors.fetch_add(1, std::memory_order_relaxed);
  const auto* const answer = dynamic_cast<const api::StatusError*>(&error);
  auto failure = std::make_unique<ReflectorFailure>();
  failure->message = error.what();
  failure->status = answer == nullptr ? 0 : answer->code();
  failure->at = clock_->now();
  {
    const std::lock_guard lock(mutex_);
    failure_ = std::move(failure);
  }
  try {
    store_.failed(error);
  } catch (const std::exception& e) {
    log::error("{}: the store threw while it handled a failure: {}", options_.name, e.what());
  } catch (...) {
    log::error("{}: the store threw while it handled a failure", options_.name);
  }
}

void Reflector::log_error(const std::exception& error) {
  // An unreachable server is retried every second.
  if (logged_->repeats(error)) {
    log::debug("{}: {}", name(), error.what());
  } else if (is_expired(error)) {
    log::info("{}: the watch ended, the resourceVersion has expired: {}", name(), error.what());
  } else {
    log::warn("{}: {}", name(), error.what());
  }
}

// ------------------------------------------------------------------------------------------ state

std::string Reflector::last_sync_resource_version() const {
  const std::lock_guard lock(mutex_);
  return last_sync_resource_version_;
}

void Reflector::set_last_sync(std::string resource_version) {
  const std::lock_guard lock(mutex_);
  last_sync_resource_version_ = std::move(resource_version);
}

void Reflector::note_activity() { last_activity_.store(clock_->now(), std::memory_order_relaxed); }
void Reflector::set_live(bool live) {
  live = live && complete_;
  if (live) {
    const std::lock_guard lock(mutex_);
    failure_ = nullptr;
  }
  const bool was_live = live_since_.load(std::memory_order_relaxed) != kNotLive;
  if (live == was_live) return;
  live_since_.store(live ? clock_->now() : kNotLive, std::memory_order_relaxed);
}
std::shared_ptr<const std::unordered_set<std::string>> Reflector::unreadable_keys() const {
  if (!has_unreadable_.load(std::memory_order_acquire)) return nullptr;
  const std::lock_guard lock(mutex_);
  return unreadable_keys_;
}
void Reflector::set_unreadable_keys(std::unordered_set<std::string> keys) {
  const bool any = !keys.empty();
  if (!any && !has_unreadable_.load(std::memory_order_relaxed)) return;
  const std::lock_guard lock(mutex_);
  unreadable_keys_ =
      any ? std::make_shared<const std::unordered_set<std::string>>(std::move(keys)) : nullptr;
  has_unreadable_.store(any, std::memory_order_release);
}
void Reflector::forget_unreadable(const std::vector<std::string>& keys) {
  const auto known = unreadable_keys();
  if (!known) return;
  std::unordered_set<std::string> left = *known;
  for (const std::string& key : keys) left.erase(key);
  if (left.size() < known->size()) set_unreadable_keys(std::move(left));
}
std::optional<Clock::TimePoint> Reflector::live_since() const {
  const auto since = live_since_.load(std::memory_order_relaxed);
  if (since == kNotLive) return std::nullopt;
  const auto behind = source_->health();
  if (!behind) return since;
  return behind->live ? std::optional(std::max(since, behind->live_since)) : std::nullopt;
}
std::optional<ReflectorFailure> Reflector::last_failure() const {
  auto behind = source_->health();
  const std::lock_guard lock(mutex_);
  if (behind && behind->failure && (!failure_ || failure_->at < behind->failure->at))
    return std::move(behind->failure);
  return failure_ ? std::optional(*failure_) : std::nullopt;
}
const ReflectorStats& Reflector::stats() const {
  if (const auto behind = source_->health()) {
    const std::lock_guard lock(mutex_);
    // (Another thread may have added newer errors in the meantime.)
    if (behind->errors > source_errors_) {
      stats_.errors.fetch_add(behind->errors - source_errors_, std::memory_order_relaxed);
      source_errors_ = behind->errors;
    }
    stats_.unreadable.fetch_add(behind->unreadable - source_unreadable_, std::memory_order_relaxed);
    source_unreadable_ = behind->unreadable;
  }
  return stats_;
}
Clock::TimePoint Reflector::last_activity() const {
  return last_activity_.load(std::memory_order_relaxed);
}

}  // namespace lookout::cache
