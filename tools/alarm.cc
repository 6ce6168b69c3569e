#include "lookout/tools/alarm.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <mutex>
#include <optional>
#include <utility>

namespace lookout {

struct Alarm::State {
  State(const std::shared_ptr<rest::EventLoop>& loop_, std::shared_ptr<Clock> clock_,
        std::function<void()> ring_)
      : loop(loop_), clock(std::move(clock_)), ring(std::move(ring_)) {}

  const std::weak_ptr<rest::EventLoop> loop;  // a coroutine on the loop must not keep it
  const std::shared_ptr<Clock> clock;
  const std::function<void()> ring;

  std::mutex mutex;
  // Guarded by mutex.
  std::optional<Clock::TimePoint> time;
  std::stop_source asleep;  // ends the sleep that is going on
  bool running = false;
  bool closed = false;
};

Alarm::Alarm(std::shared_ptr<rest::EventLoop> loop, std::shared_ptr<Clock> clock,
             std::function<void()> ring)
    : state_(std::make_shared<State>(std::move(loop), std::move(clock), std::move(ring))) {}

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
  {
    const std::lock_guard lock(state_->mutex);
    if (state_->time && *state_->time <= time) return;
    state_->time = time;
    asleep = state_->asleep;
    if (!state_->running) {
      const auto loop = state_->loop.lock();
      if (!loop) return;
      state_->running = true;
      boost::asio::co_spawn(boost::asio::make_strand(loop->context()), run(state_),
                            boost::asio::detached);
      return;
    }
  }
  asleep.request_stop();
}

rest::Awaitable<void> Alarm::run(std::shared_ptr<State> state) {
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
    if (const auto now = state->clock->now(); now < time)
      co_await state->clock->sleep(time - now, std::move(stop));
    {
      const std::lock_guard lock(state->mutex);
      if (state->closed) co_return;
      if (state->time > state->clock->now()) continue;
      state->time.reset();
    }
    state->ring();
  }
}

}  // namespace lookout
