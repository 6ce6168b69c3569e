// The threads that user code runs on.
#pragma once

#include <chrono>
#include <functional>
#include <limits>
#include <memory>

#include "lookout/base/event_loop.h"

namespace lookout::informer {

struct HandlerPoolOptions {
  /// As many threads as are usually there; more come when these are held up.
  unsigned threads = 2;
  /// No limit by default: a handler has one task at a time, so there are never more threads than
  /// handlers. With a limit, as many handlers that block hold up all others.
  unsigned max_threads = std::numeric_limits<unsigned>::max();
  /// A task that has waited so long while all threads were busy gets a new thread. From 64 threads
  /// on it takes ten times as long, as the threads may be busy rather than blocked; then several
  /// come at once.
  std::chrono::milliseconds grow_after{10};
  /// A thread beyond the usual ones ends after so long without work.
  std::chrono::milliseconds shrink_after{10'000};
};

/// Runs event handlers, which may block: a handler that waits for something holds up its own events
/// and nobody else's. Two threads serve any number of handlers that return quickly; for each that
/// does not, the pool grows by a thread. However many block, the others go on.
///
/// The destructor waits for tasks that are running and drops those that are not.
class HandlerPool {
 public:
  explicit HandlerPool(std::shared_ptr<EventLoop> loop, HandlerPoolOptions options = {});
  ~HandlerPool();
  HandlerPool(const HandlerPool&) = delete;
  HandlerPool& operator=(const HandlerPool&) = delete;

  /// From any thread. A task that throws ends the program.
  void post(std::function<void()> task);

  unsigned threads() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace lookout::informer
