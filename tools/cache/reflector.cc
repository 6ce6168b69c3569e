#include "lookout/tools/cache/reflector.h"

#include <fmt/format.h>
#include <spdlog/spdlog.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/this_coro.hpp>
#include <utility>

#include "lookout/api/status.h"
#include "rest/async_event.h"

namespace lookout::cache {
namespace {

// The size of pages where the reflector asks for pages (client-go's pager).
constexpr std::int64_t kDefaultPageSize = 500;

/// A watch that ended at once and brought nothing: watching again at once would be a busy loop.
class VeryShortWatch : public Error {
 public:
  using Error::Error;
};

bool is_expired(const std::exception& e) { return api::is_resource_expired(e) || api::is_gone(e); }

void log_error(std::string_view name, const std::exception& e) {
  if (is_expired(e)) {
    spdlog::info("{}: the watch ended, the resourceVersion has expired: {}", name, e.what());
  } else {
    spdlog::warn("{}: {}", name, e.what());
  }
}

}  // namespace

std::shared_ptr<Reflector> Reflector::create(std::shared_ptr<ListerWatcher> source,
                                             ReflectorStore& store, ReflectorOptions options) {
  return std::shared_ptr<Reflector>(new Reflector(std::move(source), store, std::move(options)));
}

Reflector::Reflector(std::shared_ptr<ListerWatcher> source, ReflectorStore& store,
                     ReflectorOptions options)
    : source_(std::move(source)),
      store_(store),
      options_(std::move(options)),
      clock_(options_.clock ? options_.clock : Clock::real()),
      random_(std::random_device{}()),
      last_activity_(clock_->now()) {}

rest::Awaitable<void> Reflector::run(std::stop_token stop) {
  const auto self = shared_from_this();
  const auto executor = co_await boost::asio::this_coro::executor;
  rest::detail::AsyncEvent resync_ended(executor);
  bool resyncing = options_.resync_period.count() > 0;
  if (resyncing) {
    boost::asio::co_spawn(executor, resync_loop(stop), [&](std::exception_ptr) {
      resyncing = false;
      resync_ended.ring();
    });
  }
  Backoff backoff(options_.backoff, clock_);
  while (!stop.stop_requested()) {
    try {
      co_await list_and_watch(stop, backoff);
    } catch (const std::exception& e) {
      set_live(false);
      if (!stop.stop_requested()) handle_error(e);
    } catch (...) {
      set_live(false);
      handle_error(Error("something was thrown that is no std::exception"));
    }
    co_await clock_->sleep(backoff.next(), stop);
  }
  set_live(false);
  while (resyncing) co_await resync_ended.wait();
}

rest::Awaitable<void> Reflector::resync_loop(std::stop_token stop) {
  while (co_await clock_->sleep(options_.resync_period, stop)) {
    if (!listed_) continue;
    try {
      if (options_.should_resync && !options_.should_resync()) continue;
      store_.resync();
      store_.flush(resource_version_);
    } catch (const std::exception& e) {
      handle_error(e);
    } catch (...) {
      handle_error(Error("something was thrown that is no std::exception"));
    }
  }
}

rest::Awaitable<void> Reflector::list_and_watch(std::stop_token stop, Backoff& backoff) {
  co_await list(stop);
  co_await watch(stop, backoff);
}

// ------------------------------------------------------------------------------------------
// listing

std::string Reflector::relist_resource_version() const {
  // "" asks for the newest state, from the storage itself: when what we had is too old or too new.
  if (resource_version_unavailable_) return "";
  // "0" lets the server answer from its cache.
  return resource_version_.empty() ? "0" : resource_version_;
}

rest::Awaitable<void> Reflector::list(std::stop_token stop) {
  std::vector<api::Object> items;
  std::string resource_version;
  for (bool again = true; again;) {
    again = false;
    items.clear();
    rest::ListOptions options;
    options.resource_version = relist_resource_version();
    try {
      resource_version = co_await list_pages(options, items, stop);
    } catch (const std::exception& e) {
      const bool unavailable = is_expired(e) || api::is_too_large_resource_version(e);
      if (!unavailable || resource_version_unavailable_) throw;
      resource_version_unavailable_ = true;
      again = true;
    }
  }
  resource_version_unavailable_ = false;
  listed_ = true;
  resource_version_ = resource_version;
  store_.replace(std::move(items), resource_version);
  // Before anybody can be told that there is a list.
  set_live(true);
  store_.flush(resource_version);
  set_last_sync(std::move(resource_version));
}

rest::Awaitable<std::string> Reflector::list_pages(rest::ListOptions options,
                                                   std::vector<api::Object>& items,
                                                   std::stop_token stop) {
  const std::string requested = options.resource_version;
  if (options_.page_size > 0) {
    options.limit = options_.page_size;
  } else if (paginated_ || requested.empty() || requested == "0") {
    options.limit = kDefaultPageSize;
  }
  // (Otherwise the server's cache has it all, and pages would make it ask the storage.)
  auto on_item = [&](api::Object item) {
    if (!acceptable(item, "list")) return;
    api::Object known = store_.find(item);
    items.push_back(known == item ? std::move(known) : std::move(item));
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
      // The pages took longer than the server keeps history: all at once, then.
      items.clear();
      options.limit = 0;
      options.continue_token.clear();
      options.resource_version = requested;
      continuing = false;
      continue;
    }
    stats_.skipped.fetch_add(meta.malformed_items, std::memory_order_relaxed);
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

rest::Awaitable<void> Reflector::watch(std::stop_token stop, Backoff& backoff) {
  while (!stop.stop_requested()) {
    rest::ListOptions options;
    options.resource_version = resource_version_;
    options.allow_watch_bookmarks = true;
    std::uniform_real_distribution<double> spread(1.0, 2.0);
    options.timeout = std::chrono::seconds(static_cast<std::int64_t>(
        static_cast<double>(options_.min_watch_timeout.count()) * spread(random_)));
    // From no version or any, everything that is there comes first, in no order.
    ordered_ = !resource_version_.empty() && resource_version_ != "0";
    // Before the request: some proxies hold an answer back until there is an event.
    const auto begin = clock_->now();
    bool wait = false;
    try {
      stats_.watches.fetch_add(1, std::memory_order_relaxed);
      const auto watcher = co_await source_->watch(options, stop);
      note_activity();
      set_live(true);
      co_await follow(*watcher, begin, stop);
    } catch (const std::exception& e) {
      if (stop.stop_requested()) co_return;
      // A server that does not answer, or not yet, most likely still has our resourceVersion when
      // it does: no need for a new list.
      if (!rest::is_transient(e) && !api::is_too_many_requests(e)) throw;
      set_live(false);
      stats_.errors.fetch_add(1, std::memory_order_relaxed);
      spdlog::debug("{}: {}", options_.name, e.what());
      wait = true;
    }
    if (wait) co_await clock_->sleep(backoff.next(), stop);
  }
}

rest::Awaitable<void> Reflector::follow(Watcher& watcher, Clock::TimePoint begin,
                                        std::stop_token stop) {
  std::uint64_t count = 0;
  std::vector<api::WatchEvent> events;
  bool more = true;
  while (more && !stop.stop_requested()) {
    try {
      more = co_await watcher.next(events);
    } catch (const rest::TransportError& e) {
      if (stop.stop_requested()) co_return;
      set_live(false);
      // The server went away, perhaps in the middle of an event: what was whole has been taken.
      spdlog::debug("{}: {}", options_.name, e.what());
      more = false;
      events.clear();
    }
    if (events.empty()) continue;
    note_activity();
    std::exception_ptr failed;
    try {
      for (const auto& event : events) count += take(event) ? 1u : 0u;
    } catch (...) {
      failed = std::current_exception();
    }
    // What came before an error still counts.
    store_.flush(resource_version_);
    set_last_sync(resource_version_);
    if (failed) std::rethrow_exception(failed);
  }
  if (count == 0 && clock_->now() - begin < std::chrono::seconds(1)) {
    stats_.short_watches.fetch_add(1, std::memory_order_relaxed);
    throw VeryShortWatch("the watch lasted less than a second and brought nothing");
  }
}

bool Reflector::take(const api::WatchEvent& event) {
  if (event.type == api::EventType::kError) {
    auto status = api::Status::from(event.object);
    if (!status)
      throw Error(fmt::format("an error event without a Status: {}", event.object.to_json()));
    throw api::StatusError(std::move(*status));
  }
  if (event.type == api::EventType::kBookmark) {
    stats_.bookmarks.fetch_add(1, std::memory_order_relaxed);
  } else {
    if (!acceptable(event.object, "watch")) return false;
    stats_.events.fetch_add(1, std::memory_order_relaxed);
  }
  switch (event.type) {
    case api::EventType::kAdded:
      store_.add(event.object);
      break;
    case api::EventType::kModified:
      store_.update(event.object);
      break;
    case api::EventType::kDeleted:
      store_.remove(event.object);
      break;
    case api::EventType::kBookmark:
    case api::EventType::kError:
      break;
  }
  if (event.type != api::EventType::kAdded) ordered_ = true;
  if (ordered_ && !event.object.resource_version().empty())
    resource_version_ = event.object.resource_version();
  return true;
}

bool Reflector::acceptable(const api::Object& object, std::string_view where) {
  const bool expected =
      options_.expected_kind.empty() || (object.kind() == options_.expected_kind &&
                                         object.api_version() == options_.expected_api_version);
  if (expected && !object.name().empty()) return true;
  stats_.skipped.fetch_add(1, std::memory_order_relaxed);
  if (!expected) {
    spdlog::error("{}: expected {} {} in the {}, left out {} {} {}", options_.name,
                  options_.expected_api_version, options_.expected_kind, where,
                  object.api_version(), object.kind(), object.key());
  } else {
    spdlog::error("{}: left out a {} without a name in the {}", options_.name, object.kind(),
                  where);
  }
  return false;
}

void Reflector::handle_error(const std::exception& error) {
  stats_.errors.fetch_add(1, std::memory_order_relaxed);
  if (!options_.watch_error_handler) {
    log_error(options_.name, error);
    return;
  }
  try {
    options_.watch_error_handler(options_.name, error);
  } catch (const std::exception& e) {
    spdlog::error("{}: the watch error handler threw: {}", options_.name, e.what());
  } catch (...) {
    spdlog::error("{}: the watch error handler threw", options_.name);
  }
}

// ------------------------------------------------------------------------------- seen from outside

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
  if (live == this->live()) return;
  live_since_.store(live ? clock_->now() : kNotLive, std::memory_order_relaxed);
}
std::optional<Clock::TimePoint> Reflector::live_since() const {
  const auto since = live_since_.load(std::memory_order_relaxed);
  return since == kNotLive ? std::nullopt : std::optional(since);
}
Clock::TimePoint Reflector::last_activity() const {
  return last_activity_.load(std::memory_order_relaxed);
}

}  // namespace lookout::cache
