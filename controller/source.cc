#include "lookout/controller/source.h"

#include <algorithm>
#include <cstddef>
#include <exception>
#include <thread>

#include "controller/in_source.h"
#include "lookout/base/detail/log.h"
#include "lookout/base/error.h"
#include "lookout/base/sleep.h"

namespace lookout::controller {

void Enqueue::operator()(Request request) {
  // Most events have few requests, for which a linear search is cheaper than a set.
  constexpr std::size_t kFew = 16;
  if (request.name.empty()) return;
  if (requests_.size() < kFew) {
    if (std::find(requests_.begin(), requests_.end(), request) != requests_.end()) return;
  } else {
    if (known_.empty()) known_.insert(requests_.begin(), requests_.end());
    if (!known_.insert(request).second) return;
  }
  requests_.push_back(std::move(request));
}

void Channel::send(Request request, int priority) {
  std::shared_ptr<const std::function<void(const Request&, int)>> add;
  {
    const std::lock_guard lock(mutex_);
    if (stopped_) return;
    if (!add_) {
      int& highest = early_.try_emplace(std::move(request), priority).first->second;
      highest = std::max(highest, priority);
      return;
    }
    add = add_;
  }
  (*add)(request, priority);
}

void Channel::start(const SourceContext& context, std::function<void()> ready) {
  std::map<Request, int> early;
  {
    const std::lock_guard lock(mutex_);
    add_ = std::make_shared<const std::function<void(const Request&, int)>>(context.add);
    early.swap(early_);
  }
  for (const auto& [request, priority] : early) context.add(request, priority);
  ready();
}

void Channel::stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  add_ = nullptr;
}

namespace {

/// The pause after a failure of a timer's clock.
constexpr std::chrono::seconds kTimerPause{1};

class Timer : public Source {
 public:
  Timer(std::chrono::milliseconds period, std::function<void(Enqueue&)> function)
      : period_(Clock::limited(std::max(period, std::chrono::milliseconds(1)))),
        function_(std::move(function)) {}

  void start(const SourceContext& context, std::function<void()> ready) override {
    thread_ = std::jthread([this, context](const std::stop_token& stop) { run(context, stop); });
    ready();
  }
  void stop() override { thread_ = {}; }
  std::string name() const override { return "timer"; }

 private:
  void run(const SourceContext& context, const std::stop_token& stop) const {
    // Sleeps on the event loop with the injected clock, which may be virtual.
    while (!stop.stop_requested() && !context.end.stop_requested()) {
      Enqueue enqueue;
      try {
        const detail::InSource in_source;
        function_(enqueue);
      } catch (const std::exception& e) {
        log::error("a timer's function threw: {}", e.what());
      } catch (...) {
        log::error("a timer's function threw something that is not a std::exception");
      }
      for (const Request& request : enqueue.requests()) context.add(request, 0);
      while (!slept(context, stop)) sleep_for(kTimerPause, stop);
    }
  }

  /// Waits for the period. False if the clock failed, so that the wait must be repeated.
  bool slept(const SourceContext& context, const std::stop_token& stop) const {
    if (stop.stop_requested()) return true;
    try {
      context.loop->run(context.clock->sleep(period_, stop));
      return true;
    } catch (const std::exception& e) {
      log::error("the clock of a timer threw: {}", e.what());
    } catch (...) {
      log::error("the clock of a timer threw something that is not a std::exception");
    }
    return false;
  }

  const std::chrono::milliseconds period_;
  const std::function<void(Enqueue&)> function_;
  std::jthread thread_;
};

}  // namespace

std::shared_ptr<Source> timer(std::chrono::milliseconds period,
                              std::function<void(Enqueue& enqueue)> function) {
  if (!function) throw InvalidArgument("timer(): the function is empty");
  return std::make_shared<Timer>(period, std::move(function));
}

}  // namespace lookout::controller
