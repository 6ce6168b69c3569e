// SideTask: a coroutine that runs beside another one.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <boost/asio/co_spawn.hpp>
#include <exception>
#include <functional>
#include <memory>
#include <stop_token>
#include <utility>

#include "lookout/base/async_event.h"
#include "lookout/base/event_loop.h"

namespace lookout::cache {

/// Runs a coroutine beside its creator, on the same strand, and stops it when the creator ends. The
/// creator may end by an exception, or Asio may cancel or destroy it; it then cannot wait, so objects
/// that both use must be shared.
class SideTask {
 public:
  using Coroutine = std::function<Awaitable<void>(std::stop_token)>;

  /// Keeps `owner` alive while the coroutine runs.
  SideTask(const boost::asio::any_io_executor& executor, std::stop_token stop,
           std::shared_ptr<const void> owner, const Coroutine& coroutine)
      : state_(std::make_shared<State>(executor)),
        forward_(std::move(stop), [over = over_]() mutable { over.request_stop(); }) {
    boost::asio::co_spawn(executor, coroutine(over_.get_token()),
                          [state = state_, owner = std::move(owner)](std::exception_ptr) {
                            state->running = false;
                            state->ended.ring();
                          });
  }
  ~SideTask() { over_.request_stop(); }
  SideTask(const SideTask&) = delete;
  SideTask& operator=(const SideTask&) = delete;

  /// Stops it and waits for its end.
  Awaitable<void> end() {
    over_.request_stop();
    while (state_->running) co_await state_->ended.wait();
  }

 private:
  struct State {
    explicit State(const boost::asio::any_io_executor& executor) : ended(executor) {}
    AsyncEvent ended;
    bool running = true;
  };

  std::stop_source over_;
  const std::shared_ptr<State> state_;
  const std::stop_callback<std::function<void()>> forward_;
};

}  // namespace lookout::cache
