#include "controller/attachment.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <exception>
#include <utility>

#include "controller/waiting.h"
#include "lookout/base/detail/log.h"

namespace lookout::controller::detail {

Attachment::Attachment(std::shared_ptr<Source> source, Flag open, std::shared_ptr<EventLoop> loop,
                       std::shared_ptr<Clock> clock, std::function<void()> detached)
    : name_(source->name()),
      loop_(std::move(loop)),
      clock_(std::move(clock)),
      open_(std::move(open)),
      source_(std::move(source)),
      detached_(std::move(detached)) {}

void Attachment::start(const SourceContext& context) {
  std::shared_ptr<Source> source;
  {
    const std::lock_guard lock(mutex_);
    if (state_ != State::kNew || !*open_) return;
    state_ = State::kStarting;
    starter_ = std::this_thread::get_id();
    source = source_;
  }
  SourceContext own = context;
  own.end = end_.get_token();
  own.add = [add = context.add, open = open_](const Request& request, int priority) {
    if (*open) add(request, priority);
  };
  const auto started = [this](State state) {
    std::unique_lock lock(mutex_);
    state_ = state;
    starter_ = {};
    // The source's start() may have requested its removal.
    if (state == State::kRunning && !*open_) end(lock);
    changed_.notify_all();
  };
  try {
    source->start(own, [ready = ready_] { ready->request_stop(); });
  } catch (...) {
    // A source that failed to start is not stopped.
    started(State::kStopped);
    throw;
  }
  started(State::kRunning);
}

void Attachment::stop() {
  close();
  ready_->request_stop();
  std::unique_lock lock(mutex_);
  if (starter_ == std::this_thread::get_id()) return;
  changed_.wait(lock, [&] { return state_ != State::kStarting; });
  if (state_ == State::kNew) state_ = State::kStopped;
  if (state_ == State::kRunning) end(lock);
  changed_.wait(lock, [&] { return state_ == State::kStopped; });
}

void Attachment::close() {
  *open_ = false;
  end_.request_stop();
}

bool Attachment::stopped() const {
  const std::lock_guard lock(mutex_);
  return state_ == State::kStopped;
}

void Attachment::end(std::unique_lock<std::mutex>& lock) {
  state_ = State::kStopping;
  auto source = std::exchange(source_, nullptr);
  lock.unlock();
  // Must not throw: others wait for the end of the source.
  try {
    source->stop();
  } catch (const std::exception& e) {
    log::error("the source {} threw while it was stopped: {}", name_, e.what());
  } catch (...) {
    log::error("the source {} threw while it was stopped", name_);
  }
  source = nullptr;
  lock.lock();
  state_ = State::kStopped;
  changed_.notify_all();
}

void Attachment::remove() {
  stop();
  std::function<void()> detached;
  {
    const std::lock_guard lock(mutex_);
    detached.swap(detached_);
  }
  if (detached) detached();
}

Awaitable<void> Attachment::async_remove(std::shared_ptr<Attachment> self) {
  self->close();
  const std::function<void()> task = [self] { self->remove(); };
  // A cancelled call would still wait for the thread, and block the event loop.
  co_await uncancelled(on_thread(self->clock_, task));
}

void Attachment::begin_remove(const std::shared_ptr<Attachment>& self) {
  // Takes effect immediately, although the coroutine starts later.
  self->close();
  boost::asio::co_spawn(self->loop_->context(), async_remove(self), boost::asio::detached);
}

}  // namespace lookout::controller::detail
