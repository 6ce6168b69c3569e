#include "informer/informer_core.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <future>
#include <iterator>
#include <utility>

#include "lookout/api/error.h"
#include "lookout/base/detail/log.h"
#include "lookout/base/detail/tolerant_clock.h"

namespace lookout::informer::detail {
namespace {

cache::Indexers with_namespace_index(cache::Indexers indexers) {
  indexers.try_emplace(std::string(cache::kNamespaceIndex), cache::index_by_namespace);
  return indexers;
}

/// The minimum resync period of a handler.
constexpr std::chrono::milliseconds kMinResyncPeriod{1000};

/// The effective resync period of a handler that requests `asked`, if the informer checks every
/// `check`.
std::chrono::milliseconds effective_period(std::chrono::milliseconds asked,
                                           std::chrono::milliseconds check) {
  if (asked.count() == 0 || check.count() == 0) return std::chrono::milliseconds(0);
  return std::max(asked, check);
}

}  // namespace

InformerCore::InformerCore(std::shared_ptr<cache::ListerWatcher> source, InformerOptions options,
                           std::shared_ptr<EventLoop> loop, std::shared_ptr<HandlerPool> pool)
    : loop_(std::move(loop)),
      pool_(std::move(pool)),
      strand_(boost::asio::make_strand(loop_->context())),
      clock_(lookout::detail::tolerant(options.reflector.clock)),
      resource_(std::move(options.resource)),
      default_resync_period_(Clock::limited(options.reflector.resync_period)),
      store_(std::make_shared<cache::Indexer>(with_namespace_index(std::move(options.indexers)))),
      controller_(*store_, std::move(options.transform),
                  [this](std::vector<cache::Notification> notifications) {
                    distribute(std::move(notifications));
                  }),
      reflector_(cache::Reflector::create(std::move(source), controller_,
                                          reflector_options(std::move(options.reflector)))),
      resync_check_period_(default_resync_period_) {}

cache::ReflectorOptions InformerCore::reflector_options(cache::ReflectorOptions options) {
  options.clock = clock_;
  // Messages need a name.
  if (options.name.empty()) options.name = resource_.resource;
  if (options.name.empty()) options.name = options.expected_kind;
  if (options.name.empty()) options.name = "informer";
  options.should_resync = [this, asked = std::move(options.should_resync)] {
    return (!asked || asked()) && should_resync();
  };
  return options;
}

void InformerCore::require_not_started(const char* what) const {
  if (started_)
    throw InvalidArgument(fmt::format("the informer has been started: {} must come first", what));
}

void InformerCore::set_transform(cache::TransformFunc transform) {
  const std::lock_guard lock(mutex_);
  require_not_started("the transform");
  controller_.set_transform(std::move(transform));
}

void InformerCore::set_watch_error_handler(cache::WatchErrorHandler handler) {
  const std::lock_guard lock(mutex_);
  require_not_started("the watch error handler");
  reflector_->set_watch_error_handler(std::move(handler));
}

// ------------------------------------------------------------------------------------- handlers

std::shared_ptr<Listener> InformerCore::add(EventHandler<api::Object> handler,
                                            HandlerOptions options) {
  const auto now = clock_->now();
  std::unique_lock lock(mutex_);
  if (stopped()) {
    throw InvalidArgument("the informer has been stopped: it accepts no handlers");
  }
  ++handlers_;
  if (handler.name.empty())
    handler.name = fmt::format("{}, handler {}", reflector_->name(), handlers_);
  auto period = Clock::limited(options.resync_period.value_or(default_resync_period_));
  if (period.count() > 0) {
    if (period < kMinResyncPeriod) {
      log::warn("handler {}: a resync period of {} ms is too short, using one second", handler.name,
                period.count());
      period = kMinResyncPeriod;
    }
    if (resync_check_period_.count() == 0) {
      log::warn("handler {}: the informer was created without resyncs", handler.name);
    } else if (period < resync_check_period_) {
      if (started_) {
        log::warn("handler {}: the informer is already running and resyncs at most every {} ms",
                  handler.name, resync_check_period_.count());
      } else {
        resync_check_period_ = period;
      }
    }
  }
  auto listener =
      std::make_shared<Listener>(std::move(handler), pool_, loop_, period, options.coalesce);
  // Under the same lock as the check for a stop, so that shutdown() sees every listener.
  const auto ended = prune();
  all_.push_back(listener);
  lock.unlock();
  // On the strand, no change can come between the snapshot and later notifications.
  boost::asio::post(strand_, [self = shared_from_this(), listener, now] {
    if (self->closed_) return listener->close();
    if (self->store_->size() > 0) listener->push_all(self->store_->snapshot());
    if (self->has_synced()) listener->push_synced();
    const Clock::TimePoint first_resync = now + self->resync_period(*listener);
    const std::lock_guard guard(self->mutex_);
    self->listeners_.push_back({listener, first_resync});
  });
  return listener;
}

std::vector<std::shared_ptr<Listener>> InformerCore::prune() {
  // Not on every call, because pruning visits all listeners.
  if (all_.size() < 2 * all_after_pruning_ + 8) return {};
  const auto ended = std::stable_partition(all_.begin(), all_.end(),
                                           [](const auto& one) { return !one->ended(); });
  std::vector<std::shared_ptr<Listener>> out(std::make_move_iterator(ended),
                                             std::make_move_iterator(all_.end()));
  all_.erase(ended, all_.end());
  all_after_pruning_ = all_.size();
  return out;
}

std::vector<std::shared_ptr<Listener>> InformerCore::all() const {
  const std::lock_guard lock(mutex_);
  return all_;
}

void InformerCore::forget(const std::shared_ptr<Listener>& listener) {
  boost::asio::post(strand_, [self = shared_from_this(), listener] {
    const std::lock_guard lock(self->mutex_);
    std::erase_if(self->listeners_, [&](const Entry& e) { return e.listener == listener; });
  });
}

std::chrono::milliseconds InformerCore::resync_check_period() const {
  const std::lock_guard lock(mutex_);
  return resync_check_period_;
}

std::chrono::milliseconds InformerCore::resync_period(const Listener& listener) const {
  return effective_period(listener.requested_resync_period(), resync_check_period());
}

bool InformerCore::should_resync() {
  const auto now = clock_->now();
  bool any = false;
  for (auto& entry : listeners_) {
    const auto period = resync_period(*entry.listener);
    entry.resyncing = period.count() > 0 && now >= entry.next_resync;
    if (!entry.resyncing) continue;
    entry.next_resync = now + period;
    any = true;
  }
  return any;
}

// ----------------------------------------------------------------------------------- start and stop

void InformerCore::start() {
  {
    const std::lock_guard lock(mutex_);
    if (stopped() || started_) return;
    started_ = true;
    reflector_->set_resync_period(resync_check_period_);
  }
  boost::asio::co_spawn(strand_, run(shared_from_this()), boost::asio::detached);
}

Awaitable<void> InformerCore::run(std::shared_ptr<InformerCore> self) {
  try {
    co_await self->reflector_->run(self->stop_.get_token());
  } catch (const std::exception& e) {
    log::error("{}: the reflector ended: {}", self->reflector_->name(), e.what());
  } catch (...) {
    log::error("{}: the reflector ended", self->reflector_->name());
  }
  const std::lock_guard lock(self->mutex_);
  self->finished_ = true;
  self->changed_.notify_all();
}

void InformerCore::distribute(std::vector<cache::Notification> notifications) {
  if (!notifications.empty() && !listeners_.empty()) {
    // Updates without a change (from a resync or a new list) go only to listeners that are due for a
    // resync; usually there are none.
    const auto is_resync = [](const cache::Notification& n) { return n.sync; };
    const bool any_resync = std::any_of(notifications.begin(), notifications.end(), is_resync);
    if (notifications.size() == 1) {
      for (const auto& entry : listeners_) {
        if (!any_resync || entry.resyncing) entry.listener->push(notifications);
      }
    } else {
      // One copy of the batch for all listeners.
      auto others = std::make_shared<Listener::Batch>();
      if (any_resync) {
        std::remove_copy_if(notifications.begin(), notifications.end(), std::back_inserter(*others),
                            is_resync);
      }
      const auto all = std::make_shared<const Listener::Batch>(std::move(notifications));
      for (const auto& entry : listeners_) {
        if (!any_resync || entry.resyncing) {
          entry.listener->push(all);
        } else if (!others->empty()) {
          entry.listener->push(others);
        }
      }
    }
  }
  if (has_synced() || !controller_.has_synced()) return;
  for (const auto& entry : listeners_) entry.listener->push_synced();
  const std::lock_guard lock(mutex_);
  synced_.store(true, std::memory_order_release);
  changed_.notify_all();
}

void InformerCore::stop() {
  stop_.request_stop();
  {
    const std::lock_guard lock(mutex_);
    changed_.notify_all();
  }
  for (const auto& listener : all()) listener->stop_waits();
}

void InformerCore::shutdown() {
  if (loop_->running_in_this_thread()) {
    throw InvalidArgument("shutdown() on the event loop would deadlock: use stop()");
  }
  stop();
  {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return !started_ || finished_; });
  }
  // Distribution has ended. Handlers are destroyed here, not on the strand, where destructors of
  // their captures could not wait for the event loop.
  // (Concurrent calls of shutdown() wait for the same handlers.)
  const auto listeners = all();
  for (const auto& listener : listeners) listener->close();
  std::promise<void> closed;
  boost::asio::post(strand_, [&] {
    close_listeners();
    closed.set_value();
  });
  closed.get_future().wait();
  for (const auto& listener : listeners) listener->wait_closed();
}

void InformerCore::end() {
  if (!loop_->running_in_this_thread()) return shutdown();
  stop();
  for (const auto& listener : all()) listener->close();
  boost::asio::post(strand_, [self = shared_from_this()] { self->close_listeners(); });
}

void InformerCore::close_listeners() {
  closed_ = true;
  std::vector<Entry> listeners;
  {
    const std::lock_guard lock(mutex_);
    listeners.swap(listeners_);
  }
  for (const auto& entry : listeners) entry.listener->close();
}

bool InformerCore::wait_for_sync(std::stop_token stop) const {
  if (!has_synced() && !stopped() && loop_->running_in_this_thread()) {
    throw InvalidArgument("wait_for_sync() on the event loop would deadlock");
  }
  std::unique_lock lock(mutex_);
  changed_.wait(lock, stop, [&] { return synced_ || stopped(); });
  return synced_;
}

// ------------------------------------------------------------------------------------ metrics

void InformerCore::collect(std::vector<metrics::Sample>& out) const {
  const cache::ReflectorStats& stats = reflector_->stats();
  const double version = metrics::version_value(reflector_->last_sync_resource_version());

  metrics::Collector own(out, {{"name", reflector_->name()}});
  own.counter("reflector_lists_total", "Requests for the whole state, as a list or as a stream",
              stats.lists);
  own.counter("reflector_streamed_lists_total", "Whole states that arrived as a stream",
              stats.streamed_lists);
  own.summary("reflector_list_duration_seconds",
              "How long it took to receive the whole state, in seconds", stats.list_seconds);
  own.summary("reflector_items_per_list", "Number of objects in the whole state", stats.list_items);
  own.counter("reflector_watches_total", "Number of started watches", stats.watches);
  own.counter("reflector_short_watches_total", "Number of watches that ended without an event",
              stats.short_watches);
  own.summary("reflector_watch_duration_seconds", "How long watches lasted, in seconds",
              stats.watch_seconds);
  own.summary("reflector_items_per_watch", "Number of events per watch", stats.watch_items);
  own.gauge("reflector_last_resource_version",
            "The 15 least significant digits of the last resourceVersion", version);
  own.counter("reflector_events_total", "Changes received", stats.events);
  own.counter("reflector_bookmarks_total", "Bookmarks received", stats.bookmarks);
  own.counter("reflector_errors_total", "Failed lists and watches", stats.errors);
  own.counter("reflector_skipped_objects_total", "Objects that were skipped", stats.skipped);
  own.counter("informer_transform_failures_total", "Changes dropped because the transform failed",
              static_cast<double>(controller_.transform_failures()));
  own.counter("informer_index_failures_total", "Exceptions that index functions threw",
              static_cast<double>(store_->index_failures()));
  own.gauge("reflector_unreadable_objects", "Unreadable objects in the last list",
            static_cast<double>(stats.unreadable.load(std::memory_order_relaxed)));
  own.gauge("informer_stored_items", "Objects in the store", static_cast<double>(store_->size()));
  own.gauge("informer_synced", "1 once the store has been complete", has_synced() ? 1 : 0);
  own.gauge(
      "informer_live",
      "1 while the store is in sync with the server; 0 from a failed list or watch until the next "
      "successful one",
      reflector_->live() ? 1 : 0);
  own.gauge("informer_last_activity_seconds", "Seconds since the server's last sign of life",
            std::chrono::duration<double>(reflector_->staleness()).count());

  // These are client-go's, labels and buckets included.
  metrics::Collector queue(out, {{"name", reflector_->name()},
                                 {"group", resource_.group},
                                 {"version", resource_.version},
                                 {"resource", resource_.resource}});
  queue.gauge("informer_queued_items", "Number of changes that have not reached the store yet",
              static_cast<double>(controller_.queued()));
  queue.histogram("informer_processing_latency_seconds",
                  "How long it took to apply and pass on a batch of changes, in seconds",
                  controller_.processing());
  queue.gauge("informer_store_resource_version",
              "The 15 least significant digits of the resourceVersion of the store",
              metrics::version_value(store_->resource_version()));

  std::vector<std::shared_ptr<Listener>> listeners;
  {
    const std::lock_guard lock(mutex_);
    for (const auto& entry : listeners_) listeners.push_back(entry.listener);
  }
  for (const auto& listener : listeners) {
    metrics::Collector handler(out, {{"name", reflector_->name()}, {"handler", listener->name()}});
    handler.gauge("informer_handler_pending_notifications",
                  "Number of notifications that wait for the handler",
                  static_cast<double>(listener->backlog()));
    handler.histogram(
        "informer_handler_queue_latency_seconds",
        "How long the oldest notification of a batch waited for the handler, in seconds",
        listener->latency());
    handler.histogram("informer_handler_duration_seconds",
                      "How long the handler took for a batch, in seconds", listener->duration());
    handler.counter("informer_handler_exceptions_total",
                    "Number of exceptions that the handler threw",
                    static_cast<double>(listener->exceptions()));
  }
}

}  // namespace lookout::informer::detail
