#include "lookout/base/detail/tolerant_clock.h"

#include <atomic>
#include <bit>
#include <chrono>
#include <cstdint>
#include <exception>
#include <utility>

#include "lookout/base/detail/log.h"

namespace lookout::detail {
namespace {

class TolerantClock : public Clock {
 public:
  explicit TolerantClock(std::shared_ptr<Clock> clock) : clock_(std::move(clock)) {}

  TimePoint now() const override {
    try {
      const TimePoint out = clock_->now();
      last_.store(out, std::memory_order_relaxed);
      return out;
    } catch (...) {
      note_exception();
    }
    return last_.load(std::memory_order_relaxed);
  }

  Awaitable<bool> sleep(Duration duration, std::stop_token stop) override {
    bool passed = false;
    bool failed = false;
    try {
      passed = co_await clock_->sleep(duration, stop);
    } catch (...) {
      note_exception();
      failed = true;
    }
    if (failed) passed = co_await real_->sleep(duration, std::move(stop));
    co_return passed;
  }

 private:
  /// In a catch block. Logs the exceptions 1, 2, 4, 8 and so on: the clock may throw for ever.
  void note_exception() const {
    const std::uint64_t count = exceptions_.fetch_add(1, std::memory_order_relaxed) + 1;
    if (!std::has_single_bit(count)) return;
    try {
      throw;
    } catch (const std::exception& e) {
      log::error("the program's clock threw: {} (exceptions: {})", e.what(), count);
    } catch (...) {
      log::error("the program's clock threw something that is not a std::exception ({} times)",
                 count);
    }
  }

  const std::shared_ptr<Clock> clock_;
  const std::shared_ptr<Clock> real_ = Clock::real();
  mutable std::atomic<TimePoint> last_{TimePoint()};
  mutable std::atomic<std::uint64_t> exceptions_{0};
};

}  // namespace

std::shared_ptr<Clock> tolerant(std::shared_ptr<Clock> clock) {
  return clock ? std::make_shared<TolerantClock>(std::move(clock)) : Clock::real();
}

Awaitable<void> wait_for(std::shared_ptr<Clock> clock, std::stop_token event) {
  while (!event.stop_requested()) {
    bool failed = false;
    try {
      co_await clock->sleep(std::chrono::hours(24), event);
    } catch (...) {
      failed = true;
    }
    if (failed) clock = Clock::real();
  }
}

}  // namespace lookout::detail
