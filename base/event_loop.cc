#include "lookout/base/event_loop.h"

#include <boost/asio/executor_work_guard.hpp>
#include <thread>
#include <vector>

#include "lookout/base/processors.h"

namespace lookout {

struct EventLoop::State {
  explicit State(int concurrency) : context(concurrency), work(context.get_executor()) {}

  boost::asio::io_context context;
  boost::asio::executor_work_guard<boost::asio::io_context::executor_type> work;
  std::vector<std::thread> threads;
};

EventLoop::EventLoop(unsigned threads) {
  if (threads == 0) threads = usable_processors();
  state_ = std::make_shared<State>(static_cast<int>(threads));
  for (unsigned i = 0; i < threads; ++i) {
    // The thread keeps the state alive: see the destructor.
    state_->threads.emplace_back([state = state_] { state->context.run(); });
  }
}

EventLoop::~EventLoop() {
  state_->context.stop();
  for (auto& thread : state_->threads) {
    if (thread.get_id() == std::this_thread::get_id()) {
      thread.detach();
    } else {
      thread.join();
    }
  }
  state_->threads.clear();
}

boost::asio::io_context& EventLoop::context() { return state_->context; }
unsigned EventLoop::threads() const { return static_cast<unsigned>(state_->threads.size()); }

bool EventLoop::running_in_this_thread() const {
  return state_->context.get_executor().running_in_this_thread();
}

}  // namespace lookout
