#include "lookout/controller/priority_queue.h"

#include <algorithm>
#include <boost/intrusive/list.hpp>
#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>
#include <vector>

#include "lookout/api/object.h"
#include "lookout/base/alarm.h"
#include "lookout/tools/workqueue/queue.h"

namespace lookout::controller {
namespace {

using workqueue::detail::end_of_delay;
using workqueue::detail::seconds_since;

/// Limits the number of time series; further priorities share one label.
constexpr std::size_t kMaxPriorityLabels = 25;
constexpr const char* kOtherPriorities = "exceeded_cardinality_limit";
/// The number of empty priority lists to keep for reuse.
constexpr std::size_t kMaxEmptyLevels = 8;
/// Events delay a request for at most this many debounce periods.
constexpr int kMaxDebouncePeriods = 10;

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

  /// `retry`: the request is not for an event.
  void add(const Request& request, Clock::Duration delay, int priority, bool retry) {
    const bool debounced = !retry && options_.debounce > Clock::Duration::zero();
    if (debounced) delay = options_.debounce;
    const auto now = options_.clock->now();
    const bool later = delay > Clock::Duration::zero();
    auto time = later ? end_of_delay(now, delay) : now;
    bool ready = false;
    bool wake = false;
    {
      const std::lock_guard lock(mutex_);
      if (shutting_down_) return;
      if (retry && later) ++retries_;
      const auto [at, added] = entries_.try_emplace(request);
      Entry& entry = at->second;
      if (added) entry.request = &at->first;
      if (!entry.pending) {
        ++adds_;
        entry.pending = true;
        entry.priority = priority;
        entry.time = time;
        entry.latest =
            debounced ? end_of_delay(now, kMaxDebouncePeriods * Clock::limited(delay)) : time;
        entry.since = now;
        entry.due = !later;
        place(entry);
      } else {
        if (debounced) {
          time = std::min(time, entry.latest);
        } else {
          entry.latest = std::min(entry.latest, time);
        }
        const bool raised = priority > entry.priority;
        const bool moved =
            !entry.due && (!later || time < entry.time || (debounced && time != entry.time));
        if (!raised && !moved) return;
        unplace(entry);
        entry.priority = std::max(entry.priority, priority);
        if (moved) {
          entry.time = time;
          entry.due = !later;
          if (entry.due) entry.since = now;
        }
        place(entry);
      }
      ready = entry.level != nullptr;
      wake = ready && getting_ > 0;
    }
    if (wake) changed_.notify_one();
    if (ready) {
      tell();
    } else if (later) {
      alarm_->set(time);
    }
  }

  std::optional<Item> get(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    if (by_age_.empty()) {
      ++getting_;
      changed_.wait(lock, stop, [&] { return !by_age_.empty() || shutting_down_; });
      --getting_;
    }
    if (shutting_down_ || by_age_.empty()) return std::nullopt;
    if (stop.stop_requested()) {
      wake_one();  // this call may have consumed a notification: wake another waiter
      return std::nullopt;
    }
    return pop();
  }

  std::optional<Item> try_get() {
    const std::lock_guard lock(mutex_);
    if (shutting_down_ || by_age_.empty()) return std::nullopt;
    return pop();
  }

  void done(const Request& request, bool hold, Clock::TimePoint now) {
    bool ready = false;
    {
      const std::lock_guard lock(mutex_);
      const auto at = entries_.find(request);
      if (at == entries_.end() || !at->second.working) return;
      Entry& entry = at->second;
      work_duration_.observe(seconds_since(entry.work_began, now));
      entry.working = false;
      working_.erase(working_.iterator_to(entry));
      entry.held = hold;
      held_ += hold ? 1 : 0;
      ready = settle(at);
    }
    if (ready) tell();
  }

  void release(const Request& request) {
    bool ready = false;
    {
      const std::lock_guard lock(mutex_);
      const auto at = entries_.find(request);
      if (at == entries_.end() || !at->second.held) return;
      at->second.held = false;
      --held_;
      ready = settle(at);
    }
    if (ready) tell();
  }

  std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return by_age_.size();
  }
  std::size_t held() const {
    const std::lock_guard lock(mutex_);
    return held_;
  }

  void shut_down() {
    const std::lock_guard lock(mutex_);
    shutting_down_ = true;
    levels_.clear();
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

  std::vector<Work> working() const {
    std::vector<Work> out;
    const std::lock_guard lock(mutex_);
    for (const Entry& entry : working_) out.push_back({*entry.request, entry.work_began});
    return out;
  }

  Clock::TimePoint now() const { return options_.clock->now(); }
  void on_ready(std::function<void()> callback) { on_ready_ = std::move(callback); }
  workqueue::RateLimiter<Request>& limiter() const { return *options_.rate_limiter; }

  void collect(std::vector<metrics::Sample>& out) const {
    const std::lock_guard lock(mutex_);
    std::vector<std::pair<const Request*, Clock::TimePoint>> begins;
    for (const Entry& entry : working_) begins.emplace_back(entry.request, entry.work_began);
    const auto work = workqueue::detail::work_in_progress(begins, options_.clock->now());
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
  using Hook = boost::intrusive::list_member_hook<>;
  struct Level;
  /// Not noexcept, so that libstdc++ caches the hashes.
  struct Hash {
    std::size_t operator()(const Request& request) const {
      return api::key_hash(request.ns, request.name);
    }
  };

  /// A request that is pending, being processed, held back, or several of these.
  struct Entry {
    const Request* request = nullptr;  // its key in entries_
    bool pending = false;
    bool due = false;  // its delay has ended
    bool working = false;
    bool held = false;
    bool in_delayed = false;
    Level* level = nullptr;  // its level, if it is ready
    int priority = 0;
    Clock::TimePoint time{};
    Clock::TimePoint latest{};  // further events delay it no longer than this
    Clock::TimePoint since{};   // when it became due
    Clock::TimePoint work_began{};
    std::uint64_t place = 0;  // order among entries with the same time
    Hook turn;                // in a level or, later, in working_
    Hook age;                 // in by_age_
  };
  using Entries = std::unordered_map<Request, Entry, Hash>;  // an entry stays where it is
  using ByTurn =
      boost::intrusive::list<Entry, boost::intrusive::member_hook<Entry, Hook, &Entry::turn>>;
  using ByAge =
      boost::intrusive::list<Entry, boost::intrusive::member_hook<Entry, Hook, &Entry::age>>;
  using DelayedPlace = std::pair<Clock::TimePoint, std::uint64_t>;
  /// The ready requests of a priority.
  struct Level {
    explicit Level(std::size_t& count) : depth(count) {}

    ByTurn turns;
    std::size_t& depth;  // in the metrics; other levels may share it
  };

  /// The first priorities get permanent labels: labels that appear and disappear with requests would create
  /// many time series.
  std::size_t& depth_of(int priority) {
    const auto at = depth_.find(priority);
    if (at != depth_.end()) return at->second;
    if (depth_.size() < kMaxPriorityLabels) return depth_[priority];
    if (!other_depth_) other_depth_ = 0;
    return *other_depth_;
  }

  void place(Entry& entry) {
    if (!entry.due) {
      entry.place = next_++;
      entry.in_delayed = true;
      delayed_.emplace(DelayedPlace{entry.time, entry.place}, &entry);
    } else if (!entry.working && !entry.held) {
      entry.level = &level_of(entry.priority);
      entry.level->turns.push_back(entry);
      ++entry.level->depth;
      // An entry with a raised priority keeps its age.
      if (!entry.age.is_linked()) by_age_.push_back(entry);
    }
  }

  Level& level_of(int priority) {
    const auto at = levels_.find(priority);
    if (at != levels_.end()) return at->second;
    return levels_.try_emplace(priority, depth_of(priority)).first->second;
  }

  /// Removes the entry from its level, but not from by_age_.
  void unplace(Entry& entry) {
    if (entry.in_delayed) delayed_.erase({entry.time, entry.place});
    if (entry.level != nullptr) {
      ByTurn& turns = entry.level->turns;
      turns.erase(turns.iterator_to(entry));
      --entry.level->depth;
      if (turns.empty() && levels_.size() > kMaxEmptyLevels) levels_.erase(entry.priority);
    }
    entry.in_delayed = false;
    entry.level = nullptr;
  }

  /// Wakes a thread that waits in get(), if there is one.
  void wake_one() {
    if (getting_ > 0) changed_.notify_one();
  }

  /// Called after processing or a hold has ended; returns true if the request became ready.
  bool settle(Entries::iterator at) {
    Entry& entry = at->second;
    if (entry.working || entry.held) return false;
    if (!entry.pending || shutting_down_) {
      entries_.erase(at);
      return false;
    }
    if (!entry.due) return false;
    place(entry);
    wake_one();
    return true;
  }

  std::optional<Item> pop() {
    const bool oldest = options_.fair_share > 0 && ++popped_ % options_.fair_share == 0;
    Entry& entry = oldest ? by_age_.front() : most_urgent();
    unplace(entry);
    by_age_.erase(by_age_.iterator_to(entry));
    const auto now = options_.clock->now();
    queue_duration_.observe(seconds_since(entry.since, now));
    entry.pending = false;
    entry.working = true;
    entry.work_began = now;
    working_.push_back(entry);
    return std::optional<Item>(std::in_place, *entry.request, entry.priority, now);
  }

  Entry& most_urgent() {
    auto level = levels_.begin();
    while (level->second.turns.empty()) ++level;
    return level->second.turns.front();
  }

  /// On the loop: makes due requests ready.
  void ripen() {
    const auto now = options_.clock->now();
    std::optional<Clock::TimePoint> next;
    std::size_t ready = 0;
    {
      const std::lock_guard lock(mutex_);
      while (!delayed_.empty() && delayed_.begin()->first.first <= now) {
        Entry& entry = *delayed_.begin()->second;
        unplace(entry);
        entry.due = true;
        entry.since = now;
        place(entry);
        if (entry.level != nullptr) {
          ++ready;
          wake_one();
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
  std::size_t getting_ = 0;                      // threads that wait in get()
  std::map<int, Level, std::greater<>> levels_;  // by priority
  ByAge by_age_;                                 // the same entries, oldest first
  ByTurn working_;
  std::map<DelayedPlace, Entry*> delayed_;
  std::map<int, std::size_t> depth_{{0, 0}};  // by priority
  std::optional<std::size_t> other_depth_;    // of those beyond kMaxPriorityLabels
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

void PriorityQueue::add(const Request& request, int priority) {
  impl_->add(request, {}, priority, false);
}
void PriorityQueue::add_after(const Request& request, Clock::Duration delay, int priority) {
  impl_->add(request, delay, priority, true);
}
void PriorityQueue::add_rate_limited(const Request& request, int priority,
                                     Clock::Duration at_least) {
  const Clock::Duration limited = impl_->limiter().when(request);
  const Clock::Duration delay = std::max(limited, at_least);
  impl_->add(request, delay, priority, true);
}
std::optional<PriorityQueue::Item> PriorityQueue::get(std::stop_token stop) {
  return impl_->get(stop);
}
std::optional<PriorityQueue::Item> PriorityQueue::try_get() { return impl_->try_get(); }
void PriorityQueue::on_ready(std::function<void()> callback) {
  impl_->on_ready(std::move(callback));
}
void PriorityQueue::done(const Request& request) { done(request, impl_->now()); }
void PriorityQueue::done(const Request& request, Clock::TimePoint now) {
  impl_->done(request, false, now);
}
void PriorityQueue::done_and_hold(const Request& request) {
  impl_->done(request, true, impl_->now());
}
void PriorityQueue::release(const Request& request) { impl_->release(request); }
void PriorityQueue::forget(const Request& request) { impl_->limiter().forget(request); }
int PriorityQueue::num_requeues(const Request& request) const {
  return impl_->limiter().num_requeues(request);
}
std::size_t PriorityQueue::size() const { return impl_->size(); }
std::size_t PriorityQueue::held() const { return impl_->held(); }
std::vector<PriorityQueue::Work> PriorityQueue::working() const { return impl_->working(); }
void PriorityQueue::shut_down() { impl_->shut_down(); }
bool PriorityQueue::shutting_down() const { return impl_->shutting_down(); }
void PriorityQueue::collect(std::vector<metrics::Sample>& out) const { impl_->collect(out); }

}  // namespace lookout::controller
