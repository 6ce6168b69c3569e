// The threads on which everything asynchronous runs.
#pragma once

#include "lookout/base/detail/asio.h"  // before Asio

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

namespace lookout {

template <class T>
using Awaitable = boost::asio::awaitable<T>;

/// A few threads that run an io_context: HTTP, decoding, reflectors, timers. Clients and informers
/// share one; a thousand of them need no more threads than one does.
///
/// Code on the loop must not block. Handlers of events may; they have threads of their own
/// (informer::HandlerPool).
///
/// The destructor stops the loop and joins its threads; what was still waiting is dropped. It may
/// be called from one of the loop's own threads (as when a callback holds the last reference): that
/// thread then ends by itself right after.
class EventLoop {
 public:
  /// 0: as many threads as there are processors that this process may use; a container's quota of
  /// CPU time counts.
  explicit EventLoop(unsigned threads = 0);
  ~EventLoop();
  EventLoop(const EventLoop&) = delete;
  EventLoop& operator=(const EventLoop&) = delete;

  /// A thread that posts to it keeps the loop until the post has returned: work that ends the loop
  /// may otherwise run, and free it, while the post still wakes a thread.
  boost::asio::io_context& context();
  unsigned threads() const;

  /// Whether the calling thread is one of the loop's.
  bool running_in_this_thread() const;

  /// Runs a coroutine on the loop and waits for its result: what makes blocking functions of
  /// coroutines. Throws what the coroutine throws, and InvalidArgument when called on the loop
  /// itself, which would wait for itself.
  template <class T>
  T run(Awaitable<T> task) {
    if constexpr (std::is_void_v<T>) {
      wait(std::move(task));
    } else {
      std::optional<T> result;
      wait(keep(std::move(task), result));
      return *std::move(result);
    }
  }

 private:
  /// run() without a result. Compiled once, because each use of co_spawn() costs a compiler much.
  void wait(Awaitable<void> task);

  template <class T>
  static Awaitable<void> keep(Awaitable<T> task, std::optional<T>& result) {
    result.emplace(co_await std::move(task));
  }

  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace lookout
