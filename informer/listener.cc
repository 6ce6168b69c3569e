#include "informer/listener.h"

#include <algorithm>
#include <utility>

#include "lookout/api/error.h"
#include "lookout/base/detail/log.h"
#include "lookout/base/pinned.h"

namespace lookout::informer::detail {

using cache::Notification;

namespace {
/// Adds to a counter with a single writer.
void add(std::atomic<std::size_t>& counter, std::size_t n) {
  counter.store(counter.load(std::memory_order_relaxed) + n, std::memory_order_relaxed);
}

/// The listener whose handler this thread is calling.
thread_local Listener* calling = nullptr;
}  // namespace

Listener::Listener(EventHandler<api::Object> handler, std::shared_ptr<HandlerPool> pool,
                   std::shared_ptr<EventLoop> loop, std::chrono::milliseconds resync_period,
                   bool coalesce)
    : name_(handler.name),
      handler_(std::move(handler)),
      pool_(std::move(pool)),
      loop_(std::move(loop)),
      resync_period_(resync_period),
      coalesce_(coalesce) {}

template <class Fill>
void Listener::enqueue(std::size_t count, Fill fill) {
  {
    const std::lock_guard lock(mutex_);
    if (closed_ || sealed_) return;
    if (empty()) since_ = std::chrono::steady_clock::now();
    add(queued_, count);
    fill();
    if (empty() || scheduled_) return;
    scheduled_ = true;
  }
  pool_->post([self = shared_from_this()] { self->drain(); });
}

void Listener::put(Item item) {
  coalesce_ ? latest_.push_back(std::move(item)) : queue_.push_back(std::move(item));
}

void Listener::push(const std::shared_ptr<const Batch>& notifications) {
  enqueue(notifications->size(), [&] {
    if (!coalesce_) return put(notifications);
    for (const auto& notification : *notifications) coalesce(notification);
  });
}

void Listener::push(const Batch& notifications) {
  if (notifications.size() != 1) return push(std::make_shared<const Batch>(notifications));
  // A single notification needs no allocation.
  enqueue(1, [&] { coalesce_ ? coalesce(notifications.front()) : put(notifications.front()); });
}

std::size_t Listener::backlog() const {
  // Read in this order: a delivered notification was queued before.
  const std::size_t delivered = delivered_.load(std::memory_order_acquire);
  const std::size_t queued = queued_.load(std::memory_order_acquire);
  return closed_ || queued < delivered ? 0 : queued - delivered;
}

void Listener::push_all(cache::Snapshot snapshot) {
  enqueue(snapshot.size(), [&] { put(std::move(snapshot)); });
}

void Listener::push_synced() {
  enqueue(0, [&] { put(Synced{}); });
}

void Listener::coalesce(const Notification& next) {
  using Type = Notification::Type;
  std::string key = next.object.key();
  const auto place = places_.find(key);
  if (place == places_.end()) {
    latest_.push_back(next);
    places_.emplace(std::move(key), std::prev(latest_.end()));
    return;
  }
  // Two notifications are merged: from the first one's previous state to the second one's state.
  add(queued_, static_cast<std::size_t>(-1));
  auto& queued = std::get<Notification>(*place->second);
  const bool known = queued.type != Type::kAdd;  // the handler knows the object by then
  if (next.type == Type::kDelete && !known) {
    add(queued_, static_cast<std::size_t>(-1));
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
  // One clock reading per round: the end of a round is the start of the next.
  auto now = std::chrono::steady_clock::now();
  calling = this;
  for (;;) {
    if (!batch.empty()) {
      const Instant begin = std::exchange(now, std::chrono::steady_clock::now());
      duration_.observe(std::chrono::duration<double>(now - begin).count());
    }
    batch.clear();
    if (batch.capacity() > kKept) std::vector<Item>().swap(batch);
    {
      std::unique_lock lock(mutex_);
      running_ = {};
      if (empty() || closed_) {
        scheduled_ = false;
        release_handler(lock);
        changed_.notify_all();
        calling = nullptr;
        return;
      }
      // (It may have been queued after the clock was read.)
      latency_.observe(std::max(0.0, std::chrono::duration<double>(now - since_).count()));
      if (coalesce_) {
        // One at a time, so that waiting notifications can still be coalesced.
        Item& first = latest_.front();
        if (const auto* next = std::get_if<Notification>(&first)) places_.erase(next->object.key());
        batch.push_back(std::move(first));
        latest_.pop_front();
      } else {
        std::swap(batch, queue_);
      }
      since_ = now;
      running_ = std::this_thread::get_id();
    }
    for (const Item& item : batch) {
      if (closed_.load(std::memory_order_relaxed)) break;
      std::visit([this](const auto& part) { deliver_part(part); }, item);
    }
  }
}

bool Listener::deliver_unless_closed(const Notification& notification) {
  if (closed_.load(std::memory_order_relaxed)) return false;
  deliver(notification);
  add(delivered_, 1);
  return true;
}

void Listener::deliver_part(const Notification& notification) {
  deliver_unless_closed(notification);
}

void Listener::deliver_part(const std::shared_ptr<const Batch>& batch) {
  for (const auto& notification : *batch) {
    if (!deliver_unless_closed(notification)) return;
  }
}

void Listener::deliver_part(const cache::Snapshot& snapshot) {
  for (const auto& object : snapshot) {
    Notification addition;
    addition.object = object;
    addition.initial = true;
    if (!deliver_unless_closed(addition)) return;
  }
}

void Listener::deliver_part(Synced) {
  if (handler_.on_synced) guarded("on_synced", [&] { handler_.on_synced(); });
  const std::lock_guard lock(mutex_);
  synced_.store(true, std::memory_order_release);
  changed_.notify_all();
}

template <class Call>
void Listener::guarded(const char* what, Call call) {
  try {
    call();
  } catch (const std::exception& e) {
    exceptions_.fetch_add(1, std::memory_order_relaxed);
    log::error("handler {}: {} threw: {}", name_, what, e.what());
  } catch (...) {
    exceptions_.fetch_add(1, std::memory_order_relaxed);
    log::error("handler {}: {} threw something that is not a std::exception", name_, what);
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
  const auto add = [&](Origin origin) {
    if (handler_.on_add) guarded("on_add", [&] { handler_.on_add(notification.object, origin); });
  };
  const auto remove = [&](const api::Object& last, FinalState final_state) {
    if (handler_.on_delete) guarded("on_delete", [&] { handler_.on_delete(last, final_state); });
  };
  switch (notification.type) {
    case Notification::Type::kAdd:
      if (passes(notification.object))
        add(notification.initial ? Origin::kInitialList : Origin::kChange);
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
        add(Origin::kChange);
      } else if (before) {
        remove(notification.before, FinalState::kKnown);
      }
      break;
    }
    case Notification::Type::kDelete:
      // The filter is applied to the previous state, which the handler knows, so that each addition is
      // followed by a deletion.
      if (passes(notification.before))
        remove(notification.object,
               notification.final_state_unknown ? FinalState::kUnknown : FinalState::kKnown);
      break;
  }
}

void Listener::seal() {
  std::unique_lock lock(mutex_);
  sealed_ = true;
  release_handler(lock);
  changed_.notify_all();
}

void Listener::close() {
  std::unique_lock lock(mutex_);
  closed_ = true;
  queue_.clear();
  latest_.clear();
  places_.clear();
  release_handler(lock);
  changed_.notify_all();
}

void Listener::release_handler(std::unique_lock<std::mutex>& lock) {
  // (A pool task that starts after close() has nothing to call.)
  const bool over = closed_ || (sealed_ && empty() && !scheduled_);
  if (!over || running_ != std::thread::id{}) return;
  running_ = std::this_thread::get_id();
  auto handler = std::exchange(handler_, {});
  lock.unlock();
  handler = {};
  lock.lock();
  running_ = {};
  changed_.notify_all();
}

bool Listener::ended() const {
  const std::lock_guard lock(mutex_);
  return (closed_ || (sealed_ && empty() && !scheduled_)) && running_ == std::thread::id{};
}

template <class Done>
void Listener::wait(Done done) {
  // If two handlers wait for each other's end, neither waits, to avoid a deadlock.
  struct Mark : base::Pinned {
    explicit Mark(Listener* waiting) : listener(waiting) { change(1); }
    ~Mark() { change(static_cast<unsigned>(-1)); }
    void change(unsigned by) const {
      if (listener == nullptr) return;
      const std::lock_guard lock(listener->mutex_);
      listener->waits_ += by;
      listener->changed_.notify_all();
    }
    Listener* const listener;
  };
  const Mark mark(calling);
  std::unique_lock lock(mutex_);
  if (running_ == std::this_thread::get_id()) return;
  changed_.wait(lock, [&] { return done() || (mark.listener != nullptr && waits_ > 0); });
}

void Listener::wait_delivered() {
  wait([this] { return closed_ || (!scheduled_ && empty() && running_ == std::thread::id{}); });
}

void Listener::wait_closed() {
  wait([this] { return running_ == std::thread::id{}; });
}

void Listener::stop_waits() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

bool Listener::wait_for_sync(std::stop_token stop) const {
  std::unique_lock lock(mutex_);
  const auto over = [&] { return closed_ || stopped_ || (sealed_ && empty() && !scheduled_); };
  if (!synced_ && !over()) {
    if (on_event_loop()) throw InvalidArgument("wait_for_sync() on the event loop would deadlock");
    if (running_ == std::this_thread::get_id())
      throw InvalidArgument("wait_for_sync() in the handler itself would deadlock");
  }
  changed_.wait(lock, stop, [&] { return synced_ || over(); });
  return synced_;
}

}  // namespace lookout::informer::detail
