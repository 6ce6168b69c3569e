// HandlerPool: the threads that run event handlers.
#pragma once

#include <chrono>
#include <functional>
#include <limits>
#include <memory>

#include "lookout/base/event_loop.h"
#include "lookout/base/pinned.h"

namespace lookout::informer {

struct HandlerPoolOptions {
  /// The usual number of threads; the pool adds more when all of them block.
  unsigned threads = 2;
  /// Unlimited by default: a handler runs one task at a time, so there are never more threads than
  /// handlers. With a limit, that many blocked handlers stall all others.
  unsigned max_threads = std::numeric_limits<unsigned>::max();
  /// If a task waits this long while all threads are busy, the pool adds a thread. From 64 threads
  /// on, the wait is ten times as long, because the threads may be busy rather than blocked;
  /// several threads are then added at once.
  std::chrono::milliseconds grow_after{10};
  /// An extra thread ends after this time without work.
  std::chrono::milliseconds shrink_after{10'000};
};

/// Runs event handlers, which may block: a blocked handler delays its own events and no others. Two
/// threads serve any number of handlers that return quickly; the pool adds a thread for each
/// handler that blocks.
///
/// The destructor waits for running tasks and drops pending ones.
class HandlerPool : public base::Pinned {
 public:
  explicit HandlerPool(std::shared_ptr<EventLoop> loop, HandlerPoolOptions options = {});
  ~HandlerPool();

  /// Queues a task; from any thread. An exception from the task terminates the program.
  void post(std::function<void()> task);

  unsigned threads() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace lookout::informer
