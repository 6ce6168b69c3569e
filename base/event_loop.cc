#include "lookout/base/event_loop.h"

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/strand.hpp>
#include <exception>
#include <future>
#include <thread>
#include <utility>
#include <vector>

#include "lookout/base/error.h"
#include "lookout/base/processors.h"

namespace lookout {

struct EventLoop::State {
  explicit State(int concurrency) : context(concurrency), work(context.get_executor()) {}

  boost::asio::io_context context;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work;
  std::vector<std::thread> threads;
  bool own_thread_ends = false;  // set on the one thread that reads it

  void run() {
    context.run();
    if (own_thread_ends) run_what_is_ready();
  }

  /// After the stop, on the last thread. An endless chain of posts does not hold up the end.
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
    // The thread keeps the state alive: see the destructor.
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
    state_->own_thread_ends = true;  // what it runs now may make more work ready
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
  // Shared: the loop may still be inside set_value() when the caller goes on.
  auto promise = std::make_shared<std::promise<void>>();
  auto future = promise->get_future();
  boost::asio::co_spawn(boost::asio::make_strand(context()), std::move(task),
                        [promise](const std::exception_ptr& error) {
                          if (error) {
                            promise->set_exception(error);
                          } else {
                            promise->set_value();
                          }
                        });
  future.get();
}

}  // namespace lookout
