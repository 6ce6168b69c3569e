#include "lookout/base/alarm.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/strand.hpp>
#include <exception>
#include <mutex>
#include <optional>
#include <utility>

#include "lookout/base/detail/log.h"
#include "lookout/base/error.h"

namespace lookout {
namespace {

/// The pause after a failure of the clock.
constexpr std::chrono::seconds kClockPause{1};

}  // namespace

struct Alarm::State {
  State(const std::shared_ptr<EventLoop>& loop_, std::shared_ptr<Clock> clock_,
        std::function<void()> ring_)
      : loop(loop_), clock(std::move(clock_)), ring(std::move(ring_)) {}

  const std::weak_ptr<EventLoop> loop;  // weak: coroutines on the loop must not keep the loop alive
  const std::shared_ptr<Clock> clock;
  const std::function<void()> ring;

  std::mutex mutex;
  // Guarded by mutex.
  std::optional<Clock::TimePoint> time;
  std::stop_source asleep;  // ends the current sleep
  bool running = false;
  bool closed = false;
};

Alarm::Alarm(std::shared_ptr<EventLoop> loop, std::shared_ptr<Clock> clock,
             std::function<void()> ring)
    : state_(std::make_shared<State>(std::move(loop), std::move(clock), std::move(ring))) {
  if (!state_->ring) throw InvalidArgument("an alarm needs a callback");
}

Alarm::~Alarm() {
  std::stop_source asleep;
  {
    const std::lock_guard lock(state_->mutex);
    state_->closed = true;
    asleep = state_->asleep;
  }
  asleep.request_stop();
}

void Alarm::set(Clock::TimePoint time) {
  std::stop_source asleep;
  std::shared_ptr<EventLoop> loop;
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->time && *state_->time <= time) return;
    state_->time = time;
    if (state_->running) {
      asleep = state_->asleep;
    } else {
      loop = state_->loop.lock();
      if (!loop) return;
      state_->running = true;
    }
  }
  if (!loop) {
    asleep.request_stop();
    return;
  }
  // Posted: started directly on the loop's thread, it would run with the caller's locks held.
  const auto strand = boost::asio::make_strand(loop->context());
  boost::asio::post(strand, [strand, state = state_] {
    boost::asio::co_spawn(strand, run(state), boost::asio::detached);
  });
}

Awaitable<void> Alarm::run(std::shared_ptr<State> state) {
  for (;;) {
    Clock::TimePoint time;
    std::stop_token stop;
    {
      const std::lock_guard lock(state->mutex);
      state->running = !state->closed && state->time.has_value();
      if (!state->running) co_return;
      time = *state->time;
      state->asleep = {};
      stop = state->asleep.get_token();
    }
    Clock::TimePoint now;
    bool failed = false;
    try {
      now = state->clock->now();
      if (now < time) {
        co_await state->clock->sleep(time - now, stop);
        now = state->clock->now();
      }
    } catch (const std::exception& e) {
      log::error("the clock of an alarm threw: {}", e.what());
      failed = true;
    } catch (...) {
      log::error("the clock of an alarm threw something that is not a std::exception");
      failed = true;
    }
    if (failed) {
      // The alarm still rings, once the clock works again.
      co_await Clock::real()->sleep(kClockPause, std::move(stop));
      continue;
    }
    {
      const std::lock_guard lock(state->mutex);
      if (state->closed) co_return;
      if (state->time > now) continue;
      state->time.reset();
    }
    try {
      state->ring();
    } catch (const std::exception& e) {
      log::error("an alarm's callback threw: {}", e.what());
    } catch (...) {
      log::error("an alarm's callback threw something that is not a std::exception");
    }
  }
}

}  // namespace lookout
