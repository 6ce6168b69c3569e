#include "controller/stages.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/strand.hpp>
#include <utility>

#include "controller/waiting.h"
#include "lookout/base/detail/log.h"

namespace lookout::controller::detail {

Stage stage_of(RunnableGroup group) {
  switch (group) {
    case RunnableGroup::kServers:
      return Stage::kServers;
    case RunnableGroup::kWebhooks:
      return Stage::kWebhooks;
    case RunnableGroup::kOthers:
      return Stage::kOthers;
    case RunnableGroup::kLeader:
      break;
  }
  return Stage::kLeader;
}

namespace {

/// The minimum time for a part of the stop, even after the stop's time limit.
constexpr std::chrono::seconds kLeastTimeForPart{1};

template <class Function>
void require_function(const std::string& name, const Function& run) {
  if (!run) throw InvalidArgument(fmt::format("{}: the function to run is empty", name));
}

}  // namespace

struct Stages::Runnable {
  std::string name;
  Stage stage = Stage::kLeader;
  AsyncRun run;
  bool part_of_stop = false;
  bool started = false;  // guarded by the mutex of Stages
  std::stop_source stop;
  std::stop_source ended;
};

Stages::Stages(std::shared_ptr<EventLoop> loop, std::shared_ptr<Clock> clock,
               std::function<void(std::exception_ptr)> fail,
               std::function<void(const std::vector<std::string>& names)> late)
    : loop_(std::move(loop)),
      clock_(std::move(clock)),
      fail_(std::move(fail)),
      late_(std::move(late)) {}

// ---------------------------------------------------------------------------------- start

void Stages::add(std::string name, AsyncRun run, Stage stage) {
  require_function(name, run);
  const auto runnable = std::make_shared<Runnable>();
  runnable->name = std::move(name);
  runnable->stage = stage;
  runnable->run = std::move(run);
  bool start_now = false;
  Runnables ended;  // destroyed without the mutex
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) {
      throw InvalidArgument(
          fmt::format("{}: the manager stops, nothing can be added any more", runnable->name));
    }
    const auto first =
        std::stable_partition(runnables_.begin(), runnables_.end(),
                              [](const auto& each) { return !each->ended.stop_requested(); });
    ended.assign(first, runnables_.end());
    runnables_.erase(first, runnables_.end());
    runnables_.push_back(runnable);
    start_now = started_[static_cast<std::size_t>(stage)];
    runnable->started = start_now;
  }
  if (start_now) start(runnable);
}

void Stages::add_blocking(std::string name, Run run, Stage stage) {
  require_function(name, run);
  add(std::move(name), on_its_thread(std::move(run)), stage);
}

Stages::AsyncRun Stages::on_its_thread(Run run) const {
  return [clock = clock_, run = std::move(run)](std::stop_token stop) -> Awaitable<void> {
    const std::function<void()> task = [&run, stop] { run(stop); };
    co_await on_thread(clock, task);
  };
}

void Stages::start(Stage stage) {
  Runnables runnables;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return;
    started_[static_cast<std::size_t>(stage)] = true;
    for (const auto& runnable : runnables_) {
      if (runnable->stage != stage || runnable->started) continue;
      runnable->started = true;
      runnables.push_back(runnable);
    }
  }
  for (const auto& runnable : runnables) start(runnable);
}

void Stages::start(const std::shared_ptr<Runnable>& runnable) {
  const auto run = [](std::shared_ptr<Runnable> what) -> Awaitable<void> {
    co_await what->run(what->stop.get_token());
  };
  boost::asio::co_spawn(boost::asio::make_strand(loop_->context()), run(runnable),
                        [self = shared_from_this(), runnable](const std::exception_ptr& error) {
                          self->finish(*runnable, error);
                        });
}

void Stages::finish(Runnable& runnable, const std::exception_ptr& error) const {
  if (error) {
    // A failure during the stop is only logged: usually it is caused by the stop.
    const bool ignored = !runnable.part_of_stop && stopping();
    try {
      std::rethrow_exception(error);
    } catch (const std::exception& e) {
      log::at(ignored ? log::Level::kWarn : log::Level::kError, "manager: {} failed{}: {}",
              runnable.name, ignored ? " during the stop" : "", e.what());
    } catch (...) {
      log::error("manager: {} threw something that is not a std::exception", runnable.name);
    }
    if (!ignored) fail_(error);
  }
  runnable.ended.request_stop();
}

bool Stages::started(Stage stage) const {
  const std::lock_guard lock(mutex_);
  return started_[static_cast<std::size_t>(stage)];
}

Awaitable<void> Stages::wait_for_end(Stage stage, std::stop_token stop) {
  for (const auto& runnable : running(stage)) {
    std::stop_source either;
    const std::stop_callback on_stop(stop, [&] { either.request_stop(); });
    const std::stop_callback on_end(runnable->ended.get_token(), [&] { either.request_stop(); });
    co_await wait_for(clock_, either.get_token());
  }
}

/// The started runnables of a stage.
Stages::Runnables Stages::running(Stage stage) const {
  Runnables out;
  const std::lock_guard lock(mutex_);
  for (const auto& runnable : runnables_) {
    if (runnable->stage == stage && runnable->started) out.push_back(runnable);
  }
  return out;
}

// ---------------------------------------------------------------------------------- stop

void Stages::begin_stop(std::optional<std::chrono::milliseconds> grace) {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  bounded_ = grace.has_value();
  deadline_ = end_of(grace.value_or(std::chrono::milliseconds::max()), clock_->now());
}

bool Stages::stopping() const {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

void Stages::request_stop() {
  for (std::size_t i = 0; i < kStages; ++i) {
    for (const auto& runnable : running(static_cast<Stage>(i))) runnable->stop.request_stop();
  }
}

Awaitable<void> Stages::stop(Stage stage) {
  Runnables runnables = running(stage);
  for (const auto& runnable : runnables) runnable->stop.request_stop();
  co_await wait_for_end(std::move(runnables), deadline());
}

Awaitable<void> Stages::run_part(std::string name, std::function<void()> part) {
  const auto runnable = std::make_shared<Runnable>();
  runnable->name = std::move(name);
  runnable->part_of_stop = true;
  runnable->run = on_its_thread([part = std::move(part)](const std::stop_token&) { part(); });
  start(runnable);
  Runnables runnables = {runnable};
  co_await wait_for_end(std::move(runnables),
                        std::max(deadline(), clock_->now() + kLeastTimeForPart));
}

Awaitable<void> Stages::wait_for_end(Runnables runnables, Clock::TimePoint until) {
  for (const auto& runnable : runnables) {
    const std::stop_token ended = runnable->ended.get_token();
    if (!overrun_) {
      const bool in_time = co_await wait_until(clock_, ended, until);
      if (!in_time) {
        overrun_ = true;
        std::vector<std::string> late;
        for (const auto& each : runnables) {
          if (!each->ended.stop_requested()) late.push_back(each->name);
        }
        late_(late);
      }
    }
    co_await wait_for(clock_, ended);
  }
}

Clock::TimePoint Stages::deadline() const {
  const std::lock_guard lock(mutex_);
  return deadline_;
}

std::optional<Clock::Duration> Stages::time_left() const {
  const std::lock_guard lock(mutex_);
  if (!bounded_) return std::nullopt;
  return std::max(deadline_ - clock_->now(), Clock::Duration::zero());
}

}  // namespace lookout::controller::detail
