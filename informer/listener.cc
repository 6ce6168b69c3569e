#include "informer/listener.h"

#include <spdlog/spdlog.h>

#include <utility>

namespace lookout::informer::detail {

using cache::Notification;

Listener::Listener(EventHandler<api::Object> handler, std::shared_ptr<HandlerPool> pool,
                   std::chrono::milliseconds resync_period, bool coalesce)
    : handler_(std::move(handler)),
      pool_(std::move(pool)),
      resync_period_(resync_period),
      coalesce_(coalesce) {}

template <class Fill>
void Listener::enqueue(std::size_t count, Fill fill) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_ || sealed_) return;
    if (empty()) since_ = std::chrono::steady_clock::now();
    waiting_.fetch_add(count, std::memory_order_relaxed);
    fill();
    if (empty() || scheduled_) return;
    scheduled_ = true;
  }
  pool_->post([self = shared_from_this()] { self->drain(); });
}

void Listener::push(const std::vector<Notification>& notifications) {
  enqueue(notifications.size(), [&] {
    for (const auto& notification : notifications) {
      if (coalesce_) {
        coalesce(notification);
      } else {
        queue_.push_back({Item::Kind::kNotification, notification, {}});
      }
    }
  });
}

void Listener::push_all(cache::Snapshot snapshot) {
  enqueue(snapshot.size(), [&] {
    Item item{Item::Kind::kSnapshot, {}, std::move(snapshot)};
    coalesce_ ? latest_.push_back(std::move(item)) : queue_.push_back(std::move(item));
  });
}

void Listener::push_synced() {
  enqueue(0, [&] {
    Item item{Item::Kind::kSynced, {}, {}};
    coalesce_ ? latest_.push_back(std::move(item)) : queue_.push_back(std::move(item));
  });
}

void Listener::coalesce(const Notification& next) {
  using Type = Notification::Type;
  std::string key = next.object.key();
  const auto place = places_.find(key);
  if (place == places_.end()) {
    latest_.push_back({Item::Kind::kNotification, next, {}});
    places_.emplace(std::move(key), std::prev(latest_.end()));
    return;
  }
  // Two become one that begins where the first did and ends where the second does.
  waiting_.fetch_sub(1, std::memory_order_relaxed);
  Notification& queued = place->second->notification;
  const bool known = queued.type != Type::kAdd;  // to the handler, when it comes to this
  if (next.type == Type::kDelete && !known) {
    waiting_.fetch_sub(1, std::memory_order_relaxed);
    latest_.erase(place->second);
    places_.erase(place);
    return;
  }
  queued.object = next.object;
  queued.sync = queued.sync && next.sync;
  if (next.type == Type::kDelete) {
    queued.type = Type::kDelete;
    queued.final_state_unknown = next.final_state_unknown;
  } else if (known) {
    queued.type = Type::kUpdate;
    queued.final_state_unknown = false;
  }
}

void Listener::drain() {
  // The memory of one batch serves the queue after the next, unless a backlog made it large.
  constexpr std::size_t kKept = 1024;
  std::vector<Item> batch;
  Instant begin{};
  for (;;) {
    if (!batch.empty()) {
      const auto took = std::chrono::steady_clock::now() - begin;
      duration_.observe(std::chrono::duration<double>(took).count());
    }
    batch.clear();
    if (batch.capacity() > kKept) std::vector<Item>().swap(batch);
    {
      const std::lock_guard lock(mutex_);
      running_ = {};
      if (empty() || closed_) {
        scheduled_ = false;
        changed_.notify_all();
        return;
      }
      begin = std::chrono::steady_clock::now();
      latency_.observe(std::chrono::duration<double>(begin - since_).count());
      if (coalesce_) {
        // One at a time: what waits may still become one with what comes.
        Item& first = latest_.front();
        if (first.kind == Item::Kind::kNotification) places_.erase(first.notification.object.key());
        batch.push_back(std::move(first));
        latest_.pop_front();
      } else {
        std::swap(batch, queue_);
      }
      since_ = begin;
      running_ = std::this_thread::get_id();
    }
    for (const Item& item : batch) {
      if (closed_.load(std::memory_order_relaxed)) break;
      deliver(item);
    }
  }
}

void Listener::deliver(const Item& item) {
  switch (item.kind) {
    case Item::Kind::kNotification:
      deliver(item.notification);
      waiting_.fetch_sub(1, std::memory_order_relaxed);
      break;
    case Item::Kind::kSnapshot:
      for (const auto& object : item.snapshot) {
        if (closed_.load(std::memory_order_relaxed)) break;
        Notification addition;
        addition.object = object;
        addition.initial = true;
        deliver(addition);
        waiting_.fetch_sub(1, std::memory_order_relaxed);
      }
      break;
    case Item::Kind::kSynced: {
      if (handler_.on_synced) guarded("on_synced", [&] { handler_.on_synced(); });
      const std::lock_guard lock(mutex_);
      synced_.store(true, std::memory_order_release);
      changed_.notify_all();
      break;
    }
  }
}

template <class Call>
void Listener::guarded(const char* what, Call call) {
  try {
    call();
  } catch (const std::exception& e) {
    exceptions_.fetch_add(1, std::memory_order_relaxed);
    spdlog::error("handler {}: {} threw: {}", handler_.name, what, e.what());
  } catch (...) {
    exceptions_.fetch_add(1, std::memory_order_relaxed);
    spdlog::error("handler {}: {} threw something that is no std::exception", handler_.name, what);
  }
}

void Listener::deliver(const Notification& notification) {
  const auto passes = [&](const api::Object& object) {
    bool result = true;
    if (handler_.filter) {
      result = false;
      guarded("filter", [&] { result = handler_.filter(object); });
    }
    return result;
  };
  const auto add = [&](bool initial) {
    if (handler_.on_add) guarded("on_add", [&] { handler_.on_add(notification.object, initial); });
  };
  const auto remove = [&](const api::Object& last, bool unknown) {
    if (handler_.on_delete) guarded("on_delete", [&] { handler_.on_delete(last, unknown); });
  };
  switch (notification.type) {
    case Notification::Type::kAdd:
      if (passes(notification.object)) add(notification.initial);
      break;
    case Notification::Type::kUpdate: {
      const bool before = passes(notification.before);
      const bool after = passes(notification.object);
      if (before && after) {
        if (handler_.on_update) {
          guarded("on_update",
                  [&] { handler_.on_update(notification.before, notification.object); });
        }
      } else if (after) {
        add(false);
      } else if (before) {
        remove(notification.before, false);
      }
      break;
    }
    case Notification::Type::kDelete:
      // What the handler has been told of is the object as it was before: so each addition has its
      // deletion, whatever the last state looks like.
      if (passes(notification.before))
        remove(notification.object, notification.final_state_unknown);
      break;
  }
}

void Listener::seal() {
  const std::lock_guard lock(mutex_);
  sealed_ = true;
}

void Listener::wait_delivered() {
  std::unique_lock lock(mutex_);
  if (running_ == std::this_thread::get_id()) return;
  changed_.wait(lock, [&] { return closed_ || (!scheduled_ && empty()); });
}

void Listener::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
  queue_.clear();
  latest_.clear();
  places_.clear();
  changed_.notify_all();
}

void Listener::wait_closed() {
  std::unique_lock lock(mutex_);
  if (running_ == std::this_thread::get_id()) return;
  changed_.wait(lock, [&] { return running_ == std::thread::id{}; });
}

bool Listener::wait_for_sync(std::stop_token stop) const {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, stop, [&] { return synced_ || closed_; });
  return synced_;
}

}  // namespace lookout::informer::detail
