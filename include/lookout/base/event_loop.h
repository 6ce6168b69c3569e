// EventLoop: the threads that run all asynchronous work.
#pragma once

#include "lookout/base/detail/asio.h"  // before Asio

#include <boost/asio/awaitable.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <memory>
#include <optional>
#include <type_traits>
#include <utility>

#include "lookout/base/pinned.h"

namespace lookout {

template <class T>
using Awaitable = boost::asio::awaitable<T>;

/// A few threads that run an io_context: HTTP, decoding, reflectors, timers. Clients and informers
/// share one loop; a thousand of them need no more threads than one.
///
/// Code on the loop must not block. Event handlers may block; they have threads of their own
/// (informer::HandlerPool).
///
/// The destructor stops the loop and joins its threads. Ready work still runs, on the thread of the
/// destructor, so cancelled calls complete. Work that waits for a timer or for the network is
/// dropped. The destructor may run on one of the loop's own threads (if a callback holds the last
/// reference); that thread then runs the ready work and ends.
class EventLoop : public base::Pinned {
 public:
  /// 0: one thread per processor that this process may use, considering a container's CPU quota.
  explicit EventLoop(unsigned threads = 0);
  ~EventLoop();

  /// A thread that posts to the context must keep the loop alive until the post has returned: the
  /// posted work may destroy the loop while the post still wakes a thread.
  boost::asio::io_context& context();
  unsigned threads() const;

  /// True if the calling thread belongs to the loop.
  bool running_in_this_thread() const;

  /// Runs a coroutine on a strand of the loop and waits for its result: the implementation of
  /// blocking functions, and the way to call coroutines from main(). Throws what the coroutine throws,
  /// and InvalidArgument on the loop itself, where it would deadlock.
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
  /// run() without a result. Compiled once, because each use of co_spawn() is expensive to compile.
  void wait(Awaitable<void> task);

  template <class T>
  static Awaitable<void> keep(Awaitable<T> task, std::optional<T>& result) {
    result.emplace(co_await std::move(task));
  }

  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace lookout
