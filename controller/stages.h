// Stages: the runnables of a manager, by the order of their start and stop.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <vector>

#include "lookout/base/clock.h"
#include "lookout/base/event_loop.h"
#include "lookout/controller/manager.h"

namespace lookout::controller::detail {

/// The order of the start; kWarmUp is the manager's own.
enum class Stage { kServers, kWebhooks, kOthers, kWarmUp, kLeader };

Stage stage_of(RunnableGroup group);

/// Starts the runnables of a stage together, and stops them together within the time of the stop.
/// All functions may be called from any thread; coroutines run one at a time.
class Stages : public std::enable_shared_from_this<Stages> {
 public:
  using AsyncRun = Manager::AsyncRun;
  using Run = Manager::Run;

  /// `fail` receives the exception of a runnable that ends before the stop, and of a part of the stop.
  /// `late` is called once, with the names of the runnables that still run, when the time of the stop is
  /// over. Both must be callable until all started runnables have ended.
  Stages(std::shared_ptr<EventLoop> loop, std::shared_ptr<Clock> clock,
         std::function<void(std::exception_ptr)> fail,
         std::function<void(const std::vector<std::string>& names)> late);

  /// Starts the runnable with its stage, or immediately if that has started. Throws InvalidArgument after
  /// begin_stop().
  void add(std::string name, AsyncRun run, Stage stage);
  /// The same for a function, which runs on its own thread.
  void add_blocking(std::string name, Run run, Stage stage);

  /// Starts a stage; does nothing after begin_stop().
  void start(Stage stage);
  /// True if the stage has been started.
  bool started(Stage stage) const;
  /// Waits until the started runnables of a stage have ended, or until a stop.
  Awaitable<void> wait_for_end(Stage stage, std::stop_token stop);

  /// The stop begins and may take `grace`; empty: no limit.
  void begin_stop(std::optional<std::chrono::milliseconds> grace);
  bool stopping() const;
  /// Requests the stop of all stages.
  void request_stop();
  /// Requests the stop of a stage and waits until its runnables have ended, even if they are late.
  Awaitable<void> stop(Stage stage);
  /// Runs a part of the stop on its own thread and waits for it, even if it is late. `name` says what it ends.
  Awaitable<void> run_part(std::string name, std::function<void()> part);
  /// The end of the stop's time; Clock::TimePoint() before begin_stop().
  Clock::TimePoint deadline() const;
  /// Empty before begin_stop(), and without a limit.
  std::optional<Clock::Duration> time_left() const;

 private:
  static constexpr std::size_t kStages = static_cast<std::size_t>(Stage::kLeader) + 1;
  struct Runnable;
  using Runnables = std::vector<std::shared_ptr<Runnable>>;

  AsyncRun on_its_thread(Run run) const;
  void start(const std::shared_ptr<Runnable>& runnable);
  void finish(Runnable& runnable, const std::exception_ptr& error) const;
  Runnables running(Stage stage) const;
  /// Waits until the runnables have ended, and reports those that are late.
  Awaitable<void> wait_for_end(Runnables runnables, Clock::TimePoint until);

  const std::shared_ptr<EventLoop> loop_;
  const std::shared_ptr<Clock> clock_;
  const std::function<void(std::exception_ptr)> fail_;
  const std::function<void(const std::vector<std::string>& names)> late_;
  bool overrun_ = false;  // in the stop

  mutable std::mutex mutex_;
  // Guarded by mutex_.
  bool stopping_ = false;
  Clock::TimePoint deadline_{};  // of the stop; set once, with stopping_
  bool bounded_ = false;         // true if there is a deadline
  std::array<bool, kStages> started_{};
  Runnables runnables_;  // ended ones stay until the next is added
};

}  // namespace lookout::controller::detail
