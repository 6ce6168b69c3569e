#include "lookout/base/event_loop.h"

#include <semaphore.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/strand.hpp>
#include <exception>
#include <future>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "lookout/base/error.h"
#include "lookout/base/pinned.h"
#include "lookout/base/processors.h"

namespace lookout {
namespace {

/// The end of a task that a thread waits for. A std::promise makes two system calls more, and a
/// condition variable one: they wake other threads even if none waits.
class End : public base::Pinned {
 public:
  End() { sem_init(&reached_, 0, 0); }
  ~End() { sem_destroy(&reached_); }

  /// Once.
  void set(std::exception_ptr error) {
    error_ = std::move(error);
    sem_post(&reached_);
  }
  /// Throws what the task has thrown.
  void wait() {
    while (sem_wait(&reached_) != 0) {  // a signal came
    }
    if (error_) std::rethrow_exception(std::move(error_));
  }

 private:
  sem_t reached_;
  std::exception_ptr error_;
};

/// Sets the end, at the latest when it is destroyed: the loop may drop the task.
class Finish {
 public:
  explicit Finish(std::shared_ptr<End> end) : end_(std::move(end)) {}
  ~Finish() {
    if (end_) (*this)(std::make_exception_ptr(std::future_error(std::future_errc::broken_promise)));
  }
  Finish(Finish&&) = default;
  Finish& operator=(Finish&&) = delete;

  void operator()(std::exception_ptr error) { std::exchange(end_, nullptr)->set(std::move(error)); }

 private:
  std::shared_ptr<End> end_;
};

}  // namespace

struct EventLoop::State {
  explicit State(int concurrency) : context(concurrency), work(context.get_executor()) {}

  boost::asio::io_context context;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work;
  std::vector<std::thread> threads;
  bool own_thread_ends = false;  // set and read on one thread

  void run() {
    context.run();
    if (own_thread_ends) run_what_is_ready();
  }

  /// Runs the ready handlers after the stop, on the last thread. Ends despite endless chains of posts.
  void run_what_is_ready() {
    constexpr int kMost = 100'000;
    context.restart();
    for (int i = 0; i < kMost && context.poll_one() != 0; ++i) {
    }
    context.stop();
  }
};

EventLoop::EventLoop(unsigned threads) {
  if (threads == 0) threads = usable_processors();
  state_ = std::make_shared<State>(static_cast<int>(threads));
  for (unsigned i = 0; i < threads; ++i) {
    // The thread keeps the state alive; see the destructor.
    state_->threads.emplace_back([state = state_] { state->run(); });
  }
}

EventLoop::~EventLoop() {
  state_->context.stop();
  bool own_thread = false;
  for (auto& thread : state_->threads) {
    if (thread.get_id() == std::this_thread::get_id()) {
      own_thread = true;
      thread.detach();
    } else {
      thread.join();
    }
  }
  state_->threads.clear();
  if (own_thread) {
    state_->own_thread_ends = true;  // the current handler may post more work
  } else {
    state_->run_what_is_ready();
  }
}

boost::asio::io_context& EventLoop::context() { return state_->context; }
unsigned EventLoop::threads() const { return static_cast<unsigned>(state_->threads.size()); }

bool EventLoop::running_in_this_thread() const {
  return state_->context.get_executor().running_in_this_thread();
}

void EventLoop::wait(Awaitable<void> task) {
  if (running_in_this_thread()) {
    throw InvalidArgument(
        "a blocking call on a thread of the event loop: co_await the asynchronous twin instead");
  }
  // Shared: the loop may still be inside set() when the caller goes on.
  const auto end = std::make_shared<End>();
  {
    // Asio still uses the context when the task has begun. If the loop is destroyed then, the context
    // ends here.
    const auto state = state_;
    boost::asio::co_spawn(boost::asio::make_strand(state->context), std::move(task), Finish(end));
  }
  end->wait();
}

}  // namespace lookout
