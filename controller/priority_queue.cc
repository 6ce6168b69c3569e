#include "lookout/controller/priority_queue.h"

#include <algorithm>
#include <condition_variable>
#include <map>
#include <mutex>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "lookout/base/alarm.h"
#include "lookout/tools/workqueue/queue.h"

namespace lookout::controller {
namespace {

using workqueue::detail::seconds_since;

/// More labels than that would make too many time series; the rest shares one.
constexpr std::size_t kMaxPriorityLabels = 25;
constexpr const char* kOtherPriorities = "exceeded_cardinality_limit";

}  // namespace

class PriorityQueue::Impl : public std::enable_shared_from_this<Impl> {
 public:
  explicit Impl(PriorityQueueOptions options) : options_(std::move(options)) {
    if (!options_.clock) options_.clock = Clock::real();
    if (!options_.loop) options_.loop = std::make_shared<EventLoop>(1u);
    if (!options_.rate_limiter) {
      options_.rate_limiter =
          std::make_shared<workqueue::ItemExponentialFailureRateLimiter<Request>>(
              std::chrono::milliseconds(5), std::chrono::seconds(1000));
    }
  }

  void begin() {
    alarm_ = std::make_unique<Alarm>(options_.loop, options_.clock, [weak = weak_from_this()] {
      if (const auto self = weak.lock()) self->ripen();
    });
  }

  void add(Request request, Clock::Duration delay, int priority, bool retry) {
    const auto now = options_.clock->now();
    const bool later = delay > Clock::Duration::zero();
    // A delay that the clock cannot add up to is as good as for ever.
    const auto time = !later ? now
                      : delay > std::chrono::hours(24 * 365 * 10)
                          ? now + std::chrono::hours(24 * 365 * 10)
                          : now + delay;
    bool ready = false;
    {
      const std::lock_guard lock(mutex_);
      if (shutting_down_) return;
      if (retry && later) ++retries_;
      const Node at = &*entries_.try_emplace(std::move(request)).first;
      Entry& entry = at->second;
      if (!entry.pending) {
        ++adds_;
        entry.pending = true;
        entry.priority = priority;
        entry.time = time;
        entry.since = now;
        entry.due = !later;
        place(at);
      } else {
        const bool raised = priority > entry.priority;
        const bool earlier = !entry.due && (!later || time < entry.time);
        if (!raised && !earlier) return;
        unplace(at);
        entry.priority = std::max(entry.priority, priority);
        if (earlier) {
          entry.time = time;
          entry.due = !later;
          if (entry.due) entry.since = now;
        }
        place(at);
      }
      ready = entry.in_ready;
      if (ready) changed_.notify_one();
    }
    if (ready) {
      tell();
    } else if (later) {
      alarm_->set(time);
    }
  }

  std::optional<Item> get(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, stop, [&] { return !ready_.empty() || shutting_down_; });
    if (shutting_down_ || ready_.empty()) return std::nullopt;
    if (stop.stop_requested()) {
      changed_.notify_one();  // it may have been woken for a request that another one can take
      return std::nullopt;
    }
    return pop();
  }

  std::optional<Item> try_get() {
    const std::lock_guard lock(mutex_);
    if (shutting_down_ || ready_.empty()) return std::nullopt;
    return pop();
  }

  void done(const Request& request, bool hold) {
    bool ready = false;
    {
      const std::lock_guard lock(mutex_);
      const Node at = find(request);
      if (at == nullptr || !at->second.working) return;
      work_duration_.observe(seconds_since(at->second.work_began, options_.clock->now()));
      at->second.working = false;
      working_.erase(&at->first);
      at->second.held = hold;
      held_ += hold ? 1 : 0;
      ready = settle(at);
    }
    if (ready) tell();
  }

  void release(const Request& request) {
    bool ready = false;
    {
      const std::lock_guard lock(mutex_);
      const Node at = find(request);
      if (at == nullptr || !at->second.held) return;
      at->second.held = false;
      --held_;
      ready = settle(at);
    }
    if (ready) tell();
  }

  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return ready_.size();
  }
  std::size_t held() const {
    const std::lock_guard lock(mutex_);
    return held_;
  }

  void shut_down() {
    const std::lock_guard lock(mutex_);
    shutting_down_ = true;
    ready_.clear();
    by_age_.clear();
    delayed_.clear();
    for (auto& [priority, count] : depth_) count = 0;
    if (other_depth_) other_depth_ = 0;
    changed_.notify_all();
  }
  bool shutting_down() const {
    const std::lock_guard lock(mutex_);
    return shutting_down_;
  }

  void on_ready(std::function<void()> callback) { on_ready_ = std::move(callback); }
  workqueue::RateLimiter<Request>& limiter() const { return *options_.rate_limiter; }

  void collect(std::vector<metrics::Sample>& out) const {
    const std::lock_guard lock(mutex_);
    const auto work = workqueue::detail::work_in_progress(working_, options_.clock->now());
    const metrics::Collector::Labels labels{{"name", options_.name}, {"controller", options_.name}};
    const auto depth = [&](const std::string& priority, std::size_t value) {
      auto with_priority = labels;
      with_priority.emplace_back("priority", priority);
      metrics::Collector(out, with_priority)
          .gauge("workqueue_depth", "Requests that are ready to be reconciled.",
                 static_cast<double>(value));
    };
    for (const auto& [priority, count] : depth_) depth(std::to_string(priority), count);
    if (other_depth_) depth(kOtherPriorities, *other_depth_);

    metrics::Collector collector(out, labels);
    collector.counter("workqueue_adds_total", "Requests that were added.",
                      static_cast<double>(adds_));
    collector.histogram("workqueue_queue_duration_seconds",
                        "How long requests waited before they were processed.", queue_duration_);
    collector.histogram("workqueue_work_duration_seconds", "How long reconciling a request took.",
                        work_duration_);
    collector.gauge("workqueue_unfinished_work_seconds",
                    "Seconds of work in progress, summed over all running reconciles.", work.sum);
    collector.gauge("workqueue_longest_running_processor_seconds",
                    "How long the longest running reconcile has run.", work.longest);
    collector.counter("workqueue_retries_total", "Requests that were added with a delay.",
                      static_cast<double>(retries_));
  }

 private:
  /// A request that waits (pending), is worked on, is held back, or several of these.
  struct Entry {
    bool pending = false;
    bool due = false;  // its time has come
    bool working = false;
    bool held = false;
    bool in_ready = false;
    bool in_delayed = false;
    int priority = 0;
    Clock::TimePoint time{};
    Clock::TimePoint since{};  // when it came due
    Clock::TimePoint work_began{};
    std::uint64_t place = 0;
    std::uint64_t age = 0;
  };
  using Entries = std::unordered_map<Request, Entry>;
  using Node = Entries::value_type*;  // stays while the map grows, which iterators do not
  using ReadyPlace = std::pair<std::int64_t, std::uint64_t>;  // priority, downwards; arrival
  using DelayedPlace = std::pair<Clock::TimePoint, std::uint64_t>;

  static ReadyPlace ready_place(const Entry& entry) {
    return {-std::int64_t{entry.priority}, entry.place};
  }

  Node find(const Request& request) {
    const auto at = entries_.find(request);
    return at == entries_.end() ? nullptr : &*at;
  }

  /// The first priorities that come get a label each for good: a label that came and went with its
  /// requests would make one time series after the other.
  std::size_t& depth_of(int priority) {
    const auto at = depth_.find(priority);
    if (at != depth_.end()) return at->second;
    if (depth_.size() < kMaxPriorityLabels) return depth_[priority];
    if (!other_depth_) other_depth_ = 0;
    return *other_depth_;
  }

  void place(Node at) {
    Entry& entry = at->second;
    entry.place = next_++;
    if (!entry.due) {
      entry.in_delayed = true;
      delayed_.emplace(DelayedPlace{entry.time, entry.place}, at);
    } else if (!entry.working && !entry.held) {
      if (entry.age == 0) entry.age = entry.place;
      entry.in_ready = true;
      ready_.emplace(ready_place(entry), at);
      by_age_.emplace(entry.age, at);
      ++depth_of(entry.priority);
    }
  }

  void unplace(Node at) {
    Entry& entry = at->second;
    if (entry.in_delayed) delayed_.erase({entry.time, entry.place});
    if (entry.in_ready) {
      ready_.erase(ready_place(entry));
      by_age_.erase(entry.age);
      --depth_of(entry.priority);
    }
    entry.in_delayed = entry.in_ready = false;
  }

  /// After work or a hold has ended; whether the request became ready.
  bool settle(Node at) {
    Entry& entry = at->second;
    if (entry.working || entry.held) return false;
    if (!entry.pending || shutting_down_) {
      entries_.erase(entries_.find(at->first));
      return false;
    }
    if (!entry.due) return false;
    place(at);
    changed_.notify_one();
    return true;
  }

  Item pop() {
    auto at = ready_.begin()->second;
    if (options_.fair_share > 0 && ++popped_ % options_.fair_share == 0)
      at = by_age_.begin()->second;
    unplace(at);
    Entry& entry = at->second;
    const auto now = options_.clock->now();
    queue_duration_.observe(seconds_since(entry.since, now));
    entry.pending = false;
    entry.age = 0;
    entry.working = true;
    entry.work_began = now;
    working_.emplace(&at->first, now);
    return {at->first, entry.priority};
  }

  /// On the loop: those whose time has come.
  void ripen() {
    const auto now = options_.clock->now();
    std::optional<Clock::TimePoint> next;
    std::size_t ready = 0;
    {
      const std::lock_guard lock(mutex_);
      while (!delayed_.empty() && delayed_.begin()->first.first <= now) {
        const auto at = delayed_.begin()->second;
        unplace(at);
        at->second.due = true;
        at->second.since = now;
        place(at);
        if (at->second.in_ready) {
          ++ready;
          changed_.notify_one();
        }
      }
      if (!delayed_.empty()) next = delayed_.begin()->first.first;
    }
    if (next) alarm_->set(*next);
    for (; ready > 0; --ready) tell();
  }

  void tell() const {
    if (on_ready_) on_ready_();
  }

  PriorityQueueOptions options_;
  std::unique_ptr<Alarm> alarm_;
  std::function<void()> on_ready_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  // Guarded by mutex_.
  Entries entries_;
  std::map<ReadyPlace, Node> ready_;
  std::map<std::uint64_t, Node> by_age_;  // those that are ready
  std::map<DelayedPlace, Node> delayed_;
  std::map<int, std::size_t> depth_{{0, 0}};  // by priority
  std::optional<std::size_t> other_depth_;    // of those beyond kMaxPriorityLabels
  std::unordered_map<const Request*, Clock::TimePoint> working_;
  std::size_t held_ = 0;
  std::uint64_t next_ = 1;
  std::uint64_t popped_ = 0;
  bool shutting_down_ = false;
  std::uint64_t adds_ = 0;
  std::uint64_t retries_ = 0;
  metrics::Histogram queue_duration_;
  metrics::Histogram work_duration_;
};

PriorityQueue::PriorityQueue(PriorityQueueOptions options)
    : impl_(std::make_shared<Impl>(std::move(options))) {
  impl_->begin();
}
PriorityQueue::~PriorityQueue() { impl_->shut_down(); }

void PriorityQueue::add(Request request, int priority) {
  impl_->add(std::move(request), {}, priority, false);
}
void PriorityQueue::add_after(Request request, Clock::Duration delay, int priority) {
  impl_->add(std::move(request), delay, priority, true);
}
void PriorityQueue::add_rate_limited(Request request, int priority, Clock::Duration at_least) {
  const Clock::Duration limited = impl_->limiter().when(request);
  const Clock::Duration delay = std::max(limited, at_least);
  impl_->add(std::move(request), delay, priority, true);
}
std::optional<PriorityQueue::Item> PriorityQueue::get(std::stop_token stop) {
  return impl_->get(stop);
}
std::optional<PriorityQueue::Item> PriorityQueue::try_get() { return impl_->try_get(); }
void PriorityQueue::on_ready(std::function<void()> callback) {
  impl_->on_ready(std::move(callback));
}
void PriorityQueue::done(const Request& request) { impl_->done(request, false); }
void PriorityQueue::done_and_hold(const Request& request) { impl_->done(request, true); }
void PriorityQueue::release(const Request& request) { impl_->release(request); }
void PriorityQueue::forget(const Request& request) { impl_->limiter().forget(request); }
int PriorityQueue::num_requeues(const Request& request) const {
  return impl_->limiter().num_requeues(request);
}
std::size_t PriorityQueue::size() const { return impl_->size(); }
std::size_t PriorityQueue::held() const { return impl_->held(); }
void PriorityQueue::shut_down() { impl_->shut_down(); }
bool PriorityQueue::shutting_down() const { return impl_->shutting_down(); }
void PriorityQueue::collect(std::vector<metrics::Sample>& out) const { impl_->collect(out); }

}  // namespace lookout::controller
