#include "controller/write_barrier.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "controller/cache_core.h"
#include "controller/waiting.h"
#include "lookout/base/numbers.h"

namespace lookout::controller::detail {
namespace {

/// How often to check caches, because bookmarks cause no notifications.
constexpr std::chrono::milliseconds kSweepEvery{100};

std::optional<std::uint64_t> number(std::string_view resource_version) {
  return base::parse_number<std::uint64_t>(resource_version);
}

bool at_least(std::string_view resource_version, std::string_view wanted) {
  const auto have = number(resource_version);
  const auto want = number(wanted);
  return have && want ? *have >= *want : resource_version == wanted;
}

/// True if the cache has gone back to an older version since the last call for this write.
bool went_back(Write& write, std::string_view cache_version) {
  const auto current = number(cache_version);
  return current && *current < std::exchange(write.cache_version, *current);
}

}  // namespace

bool seen(Write& write) {
  const CachedKind::Part* const part = write.kind->part_for(write.key.ns);
  if (part == nullptr || write.kind->retired || CachedKind::forbidden(*part)) return true;
  const cache::Snapshot now = part->informer->store().snapshot();
  if (went_back(write, now.resource_version())) return true;
  const api::Object object = now.get(write.key.ns, write.key.name);
  if (write.resource_version.empty())
    return !object || (!write.uid.empty() && object.uid() != write.uid);
  if (object && at_least(object.resource_version(), write.resource_version)) return true;
  if (at_least(now.resource_version(), write.resource_version)) return true;
  return !object && !write.selected;
}

struct WriteBarrier::Waiter {
  std::vector<Write> writes;
  std::size_t next = 0;
  Clock::TimePoint since{};
  Clock::TimePoint deadline{};
  std::function<void(bool)> then;

  /// The first write that has not been seen.
  const Write& awaited() const { return writes[next]; }
};

WriteBarrier::WriteBarrier(const std::shared_ptr<EventLoop>& loop, std::shared_ptr<Clock> clock)
    : loop_(loop), clock_(std::move(clock)) {}

void WriteBarrier::begin() {
  alarm_ = std::make_unique<Alarm>(std::move(loop_), clock_, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->sweep();
  });
}

bool WriteBarrier::advance(Waiter& waiter) {
  while (waiter.next < waiter.writes.size() && seen(waiter.writes[waiter.next])) ++waiter.next;
  return waiter.next == waiter.writes.size();
}

void WriteBarrier::wait(std::vector<Write> writes, std::chrono::milliseconds timeout,
                        std::function<void(bool)> then) {
  const auto waiter = std::make_shared<Waiter>();
  waiter->writes = std::move(writes);
  waiter->since = clock_->now();
  waiter->deadline = end_of(timeout, waiter->since);
  waiter->then = std::move(then);
  bool done = false;
  {
    // Count before checking, so that a later change finds this waiter.
    ++waiting_;
    const std::lock_guard lock(mutex_);
    done = advance(*waiter);
    if (!done) {
      // Notes the versions of the other caches.
      for (std::size_t i = waiter->next + 1; i < waiter->writes.size(); ++i)
        seen(waiter->writes[i]);
      waiters_.emplace(waiter->awaited().key, waiter);
    }
  }
  if (done) return finish({waiter}, true);
  alarm_->set(waiter->since + kSweepEvery);
}

void WriteBarrier::on_change(const CachedKind* kind, const api::Object& object) {
  if (waiting_.load() == 0) return;
  std::vector<std::shared_ptr<Waiter>> done;
  {
    const std::lock_guard lock(mutex_);
    const auto [begin, end] = waiters_.equal_range(Request(object.ns(), object.name()));
    std::vector<std::shared_ptr<Waiter>> moved;
    for (auto at = begin; at != end;) {
      const auto waiter = at->second;
      if (waiter->awaited().kind.get() != kind) {
        ++at;
        continue;
      }
      const std::size_t before = waiter->next;
      const bool complete = advance(*waiter);
      if (!complete && waiter->next == before) {
        ++at;
        continue;
      }
      at = waiters_.erase(at);
      (complete ? done : moved).push_back(waiter);
    }
    for (const auto& waiter : moved) waiters_.emplace(waiter->awaited().key, waiter);
  }
  finish(done, true);
}

void WriteBarrier::sweep() {
  const auto now = clock_->now();
  std::vector<std::shared_ptr<Waiter>> done;
  std::vector<std::shared_ptr<Waiter>> late;
  bool more = false;
  {
    const std::lock_guard lock(mutex_);
    std::vector<std::shared_ptr<Waiter>> moved;
    for (auto at = waiters_.begin(); at != waiters_.end();) {
      const auto waiter = at->second;
      const std::size_t before = waiter->next;
      if (advance(*waiter)) {
        done.push_back(waiter);
      } else if (now >= waiter->deadline) {
        late.push_back(waiter);
      } else if (waiter->next != before) {
        moved.push_back(waiter);
      } else {
        ++at;
        continue;
      }
      at = waiters_.erase(at);
    }
    for (const auto& waiter : moved) waiters_.emplace(waiter->awaited().key, waiter);
    more = !waiters_.empty();
  }
  if (more) alarm_->set(now + kSweepEvery);
  finish(done, true);
  finish(late, false);
}

void WriteBarrier::finish(const std::vector<std::shared_ptr<Waiter>>& waiters, bool seen_all) {
  for (const auto& waiter : waiters) {
    --waiting_;
    if (!seen_all) ++timeouts_;
    wait_seconds_.observe(std::chrono::duration<double>(clock_->now() - waiter->since).count());
    waiter->then(seen_all);
  }
}

std::size_t WriteBarrier::waiting() const { return waiting_.load(); }

void WriteBarrier::collect(std::vector<metrics::Sample>& out) const {
  metrics::Collector collector(out, {});
  collector.gauge("controller_write_waits", "Requests that wait until the caches have seen writes.",
                  static_cast<double>(waiting_.load()));
  collector.histogram("controller_write_wait_seconds",
                      "How long it took until the caches had seen a reconcile's writes.",
                      wait_seconds_);
  collector.counter("controller_write_wait_timeouts_total",
                    "Requests that stopped waiting for their writes because of the time limit.",
                    timeouts_);
}

}  // namespace lookout::controller::detail
