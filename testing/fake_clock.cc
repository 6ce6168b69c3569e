#include "lookout/testing/fake_clock.h"

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <utility>

#include "lookout/base/async_event.h"
#include "lookout/base/pinned.h"

namespace lookout::test {

namespace {

/// Adds without overflow: Duration::max() is an endless sleep.
Clock::TimePoint later(Clock::TimePoint time, Clock::Duration duration) {
  const bool beyond = duration > Clock::TimePoint::max() - time;
  return beyond ? Clock::TimePoint::max() : time + duration;
}

}  // namespace

struct FakeClock::Sleeper {
  Sleeper(boost::asio::any_io_executor executor, TimePoint time)
      : event(std::move(executor)), until(time) {}

  AsyncEvent event;
  const TimePoint until;
};

/// A sleeper's entry in the list, removed even if the coroutine is destroyed while it sleeps.
class FakeClock::Entry : public base::Pinned {
 public:
  Entry(FakeClock& clock, std::shared_ptr<Sleeper> sleeper) : clock_(clock), sleeper_(sleeper) {
    const std::lock_guard lock(clock_.mutex_);
    clock_.sleepers_.push_back(std::move(sleeper));
  }
  ~Entry() {
    const std::lock_guard lock(clock_.mutex_);
    clock_.sleepers_.remove(sleeper_);
  }

 private:
  FakeClock& clock_;
  const std::shared_ptr<Sleeper> sleeper_;
};

Clock::TimePoint FakeClock::now() const {
  const std::lock_guard lock(mutex_);
  return now_;
}

Awaitable<bool> FakeClock::sleep(Duration duration, std::stop_token stop) {
  const auto executor = co_await boost::asio::this_coro::executor;
  TimePoint until;
  {
    const std::lock_guard lock(mutex_);
    slept_.push_back(duration);
    if (duration < skipped_below_) {
      move_to(later(now_, duration));
      co_return !stop.stop_requested();
    }
    until = later(now_, duration);
  }
  const auto sleeper = std::make_shared<Sleeper>(executor, until);
  const Entry entry(*this, sleeper);
  const std::stop_callback on_stop(stop, [sleeper] { sleeper->event.ring(); });
  for (;;) {
    if (stop.stop_requested()) co_return false;
    {
      const std::lock_guard lock(mutex_);
      if (now_ >= until) co_return true;
    }
    co_await sleeper->event.wait();
  }
}

void FakeClock::advance(Duration duration) {
  const std::lock_guard lock(mutex_);
  move_to(later(now_, duration));
}

void FakeClock::move_to(TimePoint time) {
  now_ = time;
  for (const auto& sleeper : sleepers_) {
    if (sleeper->until <= now_) sleeper->event.ring();
  }
}

void FakeClock::skip_sleeps_below(Duration limit) {
  const std::lock_guard lock(mutex_);
  skipped_below_ = limit;
}

std::vector<Clock::Duration> FakeClock::slept() const {
  const std::lock_guard lock(mutex_);
  return slept_;
}

std::size_t FakeClock::sleepers() const {
  const std::lock_guard lock(mutex_);
  return sleepers_.size();
}

std::optional<Clock::Duration> FakeClock::next_wake() const {
  const std::lock_guard lock(mutex_);
  if (sleepers_.empty()) return std::nullopt;
  const auto first =
      std::min_element(sleepers_.begin(), sleepers_.end(),
                       [](const auto& a, const auto& b) { return a->until < b->until; });
  return (*first)->until - now_;
}

}  // namespace lookout::test
