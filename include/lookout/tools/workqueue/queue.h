// Queue: a work queue without duplicates.
#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lookout/base/attributes.h"
#include "lookout/base/clock.h"
#include "lookout/base/metrics.h"
#include "lookout/tools/workqueue/order.h"

namespace lookout::workqueue {

template <class T>
struct QueueOptions {
  /// The `name` label of its metrics; a queue without a name has no metrics.
  LOOKOUT_OPTION std::string name = {};
  /// Null: FifoOrder.
  std::unique_ptr<Order<T>> order = {};
  /// Null: the machine's clock.
  LOOKOUT_OPTION std::shared_ptr<Clock> clock = {};
};

namespace detail {

inline double seconds_since(Clock::TimePoint then, Clock::TimePoint now) {
  return std::chrono::duration<double>(now - then).count();
}

/// The end of a delay.
inline Clock::TimePoint end_of_delay(Clock::TimePoint now, Clock::Duration delay) {
  return now + Clock::limited(delay);
}

/// The age of the work in progress, in seconds.
struct WorkInProgress {
  double sum = 0;
  double longest = 0;
};
/// `begins`: the start time of each item's processing.
template <class Begins>
WorkInProgress work_in_progress(const Begins& begins, Clock::TimePoint now) {
  WorkInProgress out;
  for (const auto& [item, begin] : begins) {
    const double age = seconds_since(begin, now);
    out.sum += age;
    out.longest = std::max(out.longest, age);
  }
  return out;
}

/// The state that a queue shares with its Adders and Work items.
template <class T, class Hash>
class QueueCore {
 public:
  explicit QueueCore(QueueOptions<T> options)
      : clock_(options.clock ? std::move(options.clock) : Clock::real()),
        name_(std::move(options.name)),
        waiting_(options.order ? std::move(options.order) : std::make_unique<FifoOrder<T>>()) {}

  void add(T item, int priority) {
    const std::lock_guard lock(mutex_);
    if (shutting_down_) return;
    const bool processing = processing_.contains(item);
    const auto [at, inserted] = dirty_.try_emplace(item, Dirty{priority, {}});
    if (!inserted) {
      at->second.priority = std::max(at->second.priority, priority);
      if (!processing) waiting_->touch(item, priority);
      return;
    }
    if (measured()) {
      ++adds_;
      at->second.since = clock_->now();
    }
    if (processing) return;
    push(at, std::move(item));
  }

  std::optional<T> get(std::stop_token stop) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, stop, [&] { return waiting_->size() > 0 || shutting_down_; });
    if (stop.stop_requested() || waiting_->size() == 0) {
      // This call may have consumed the notification for an item: notify another waiter.
      if (waiting_->size() > 0) changed_.notify_one();
      return std::nullopt;
    }
    T item = waiting_->pop();
    const auto dirty = dirty_.find(item);
    Clock::TimePoint now{};
    if (measured()) {
      now = clock_->now();
      queue_duration_.observe(seconds_since(dirty->second.since, now));
    }
    dirty_.erase(dirty);
    processing_.emplace(item, now);
    return item;
  }

  void done(const T& item) {
    const std::lock_guard lock(mutex_);
    const auto processing = processing_.find(item);
    if (processing == processing_.end()) return;
    if (measured()) work_duration_.observe(seconds_since(processing->second, clock_->now()));
    processing_.erase(processing);
    const auto dirty = dirty_.find(item);
    if (dirty != dirty_.end()) {
      push(dirty, item);
    } else if (drained()) {
      drained_.notify_all();
    }
  }

  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return waiting_->size();
  }

  void shut_down() {
    const std::lock_guard lock(mutex_);
    shutting_down_ = true;
    drain_ = false;
    changed_.notify_all();
    drained_.notify_all();
  }

  bool shut_down_with_drain(std::stop_token stop) {
    std::unique_lock lock(mutex_);
    shutting_down_ = true;
    drain_ = true;
    changed_.notify_all();
    drained_.wait(lock, stop, [&] { return drained() || !drain_; });
    return drained();
  }

  bool shutting_down() const {
    const std::lock_guard lock(mutex_);
    return shutting_down_;
  }

  void note_retry() {
    const std::lock_guard lock(mutex_);
    if (measured()) ++retries_;
  }

  const std::shared_ptr<Clock>& clock() const { return clock_; }

  void collect(std::vector<metrics::Sample>& out) const {
    if (!measured()) return;
    const std::lock_guard lock(mutex_);
    const WorkInProgress work = work_in_progress(processing_, clock_->now());
    metrics::Collector collector(out, {{"name", name_}});
    collector.gauge("workqueue_depth", "Number of items that wait to be processed",
                    static_cast<double>(dirty_.size()));
    collector.counter("workqueue_adds_total", "Total number of added items",
                      static_cast<double>(adds_));
    collector.histogram("workqueue_queue_duration_seconds",
                        "How long items wait in the queue before processing, in seconds",
                        queue_duration_);
    collector.histogram("workqueue_work_duration_seconds",
                        "How long processing an item takes, in seconds", work_duration_);
    collector.gauge("workqueue_unfinished_work_seconds",
                    "Seconds of work in progress, summed over all items in processing", work.sum);
    collector.gauge("workqueue_longest_running_processor_seconds",
                    "How long the longest running item has been in processing, in seconds",
                    work.longest);
    collector.counter("workqueue_retries_total", "Total number of delayed additions",
                      static_cast<double>(retries_));
  }

 private:
  struct Dirty {
    int priority = 0;
    Clock::TimePoint since{};
  };

  using DirtyItems = std::unordered_map<T, Dirty, Hash>;

  /// Lets the item wait. If a custom Order throws, the item is dropped and may be added again.
  void push(typename DirtyItems::iterator dirty, T item) {
    try {
      waiting_->push(std::move(item), dirty->second.priority);
    } catch (...) {
      dirty_.erase(dirty);
      if (drained()) drained_.notify_all();
      throw;
    }
    changed_.notify_one();
  }
  bool measured() const { return !name_.empty(); }
  bool drained() const { return processing_.empty() && waiting_->size() == 0; }

  const std::shared_ptr<Clock> clock_;
  const std::string name_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::condition_variable_any drained_;
  // Guarded by mutex_. Items that wait are dirty and not being processed.
  std::unique_ptr<Order<T>> waiting_;
  DirtyItems dirty_;
  std::unordered_map<T, Clock::TimePoint, Hash> processing_;
  bool shutting_down_ = false;
  bool drain_ = false;
  std::uint64_t adds_ = 0;
  std::uint64_t retries_ = 0;
  metrics::Histogram queue_duration_;
  metrics::Histogram work_duration_;
};

}  // namespace detail

/// client-go's work queue: an item that is added while it waits is queued once; an item that is
/// added while it is being processed is processed again afterwards, never twice at the same time.
/// Any number of threads may add and process items:
///
///     while (auto key = queue.get()) {
///       work_on(*key);
///       queue.done(*key);
///     }
///
/// T must be copyable, comparable and hashable, and should be small: a key, not an object. All
/// functions may be called from any thread. The destructor shuts the queue down; no thread may be
/// waiting in get() then.
template <class T, class Hash = std::hash<T>>
class Queue : public metrics::Source {
 public:
  explicit Queue(QueueOptions<T> options = {})
      : core_(std::make_shared<Core>(std::move(options))) {}
  ~Queue() override { core_->shut_down(); }
  Queue(const Queue&) = delete;
  Queue& operator=(const Queue&) = delete;

  /// Adds the item, unless the queue is shut down. Only PriorityOrder uses the priority.
  void add(T item, int priority = 0) { core_->add(std::move(item), priority); }

  /// Waits for an item. Empty if a stop was requested, or if the queue is shut down and empty: the
  /// worker should end. Call done() for every item.
  [[nodiscard]] std::optional<T> get(std::stop_token stop = {}) {
    return core_->get(std::move(stop));
  }

  /// Adds items to the queue as long as it exists. Event handlers, timers and other threads hold an
  /// Adder instead of a reference, so that the order of destruction does not matter.
  ///
  ///     pods.add_handler({.on_add = [add = queue.adder()](const Pod& p) { add(p.key()); }});
  ///
  /// A small value; safe to use from any thread.
  class Adder {
   public:
    explicit Adder(std::shared_ptr<detail::QueueCore<T, Hash>> core) : core_(std::move(core)) {}
    void operator()(T item, int priority = 0) const { core_->add(std::move(item), priority); }

   private:
    std::shared_ptr<detail::QueueCore<T, Hash>> core_;
  };
  Adder adder() const { return Adder(core_); }

  /// Ends the processing of an item; does nothing for an item that is not being processed.
  void done(const T& item) { core_->done(item); }

  /// An item whose destructor calls done().
  class Work {
   public:
    Work(std::shared_ptr<detail::QueueCore<T, Hash>> core, T item)
        : core_(std::move(core)), item_(std::move(item)) {}
    ~Work() {
      if (core_) core_->done(item_);
    }
    Work(Work&& other) noexcept : core_(std::move(other.core_)), item_(std::move(other.item_)) {}
    Work& operator=(Work&&) = delete;
    const T& operator*() const { return item_; }
    const T* operator->() const { return &item_; }

   private:
    std::shared_ptr<detail::QueueCore<T, Hash>> core_;
    T item_;
  };
  /// Like get(), with an automatic done(): `while (auto work = queue.next()) sync(**work);`
  [[nodiscard]] std::optional<Work> next(std::stop_token stop = {}) {
    auto item = core_->get(std::move(stop));
    if (!item) return std::nullopt;
    return std::optional<Work>(std::in_place, core_, std::move(*item));
  }

  /// The number of waiting items: for information only, since it changes at any time.
  std::size_t size() const { return core_->size(); }

  /// Accepts no more items; waiting items are still returned, then get() returns nothing.
  void shut_down() { core_->shut_down(); }
  /// Like shut_down(), and waits until all items have been processed. Returns false if a stop was
  /// requested or shut_down() was called first.
  bool shut_down_with_drain(std::stop_token stop = {}) {
    return core_->shut_down_with_drain(std::move(stop));
  }
  bool shutting_down() const { return core_->shutting_down(); }

  /// workqueue_depth etc., with client-go's names, if the queue has a name.
  void collect(std::vector<metrics::Sample>& out) const override { core_->collect(out); }

 protected:
  using Core = detail::QueueCore<T, Hash>;
  const std::shared_ptr<Core>& core() const { return core_; }

 private:
  const std::shared_ptr<Core> core_;
};

}  // namespace lookout::workqueue
