// Attachment: a source of a controller.
#pragma once

#include <atomic>
#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <stop_token>
#include <string>
#include <thread>

#include "lookout/base/clock.h"
#include "lookout/base/event_loop.h"
#include "lookout/controller/source.h"

namespace lookout::controller::detail {

/// Starts and stops one source, each at most once and in this order, from any thread.
class Attachment {
 public:
  using Flag = std::shared_ptr<std::atomic<bool>>;

  /// `open` is true, and false from the first moment of stop(). `detached` is called once, after
  /// remove() has stopped the source.
  Attachment(std::shared_ptr<Source> source, Flag open, std::shared_ptr<EventLoop> loop,
             std::shared_ptr<Clock> clock, std::function<void()> detached = {});

  /// Throws what the source throws. Does nothing after stop().
  void start(const SourceContext& context);
  /// After it returns, the source adds no request and runs no code of the program. Not on the event
  /// loop, and not in a function that a source calls.
  void stop();
  /// stop(), for a watch that is removed from a running controller.
  void remove();
  /// Runs remove() on its own thread and waits for it.
  static Awaitable<void> async_remove(std::shared_ptr<Attachment> self);
  /// The same, without waiting.
  static void begin_remove(const std::shared_ptr<Attachment>& self);

  /// Requested once the source is ready, or has been stopped.
  std::stop_token ready() const { return ready_->get_token(); }
  bool open() const { return *open_; }
  /// True if stop() has completed.
  bool stopped() const;
  const std::string& name() const { return name_; }
  const std::shared_ptr<EventLoop>& loop() const { return loop_; }

 private:
  enum class State { kNew, kStarting, kRunning, kStopping, kStopped };
  /// Makes the source add no more requests.
  void close();
  void end(std::unique_lock<std::mutex>& lock);

  const std::string name_;
  const std::shared_ptr<EventLoop> loop_;
  const std::shared_ptr<Clock> clock_;
  const std::shared_ptr<std::stop_source> ready_ = std::make_shared<std::stop_source>();
  const Flag open_;
  std::stop_source end_;

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  State state_ = State::kNew;
  std::thread::id starter_;
  std::shared_ptr<Source> source_;
  std::function<void()> detached_;
};

}  // namespace lookout::controller::detail
