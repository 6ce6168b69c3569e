// The threads that user code runs on.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "lookout/rest/event_loop.h"

namespace lookout::informer {

struct HandlerPoolOptions {
  /// As many threads as are usually there; more come when these are held up.
  unsigned threads = 2;
  unsigned max_threads = 64;
  /// A task that has waited so long while all threads were busy gets a new thread.
  std::chrono::milliseconds grow_after{10};
  /// A thread beyond the usual ones ends after so long without work.
  std::chrono::milliseconds shrink_after{10'000};
};

/// Runs event handlers, which may block: a handler that waits for something holds up its own events
/// and nobody else's. Two threads serve any number of handlers that return quickly; for each that
/// does not, the pool grows by a thread, up to a limit.
///
/// The destructor waits for tasks that are running and drops those that are not.
class HandlerPool {
 public:
  explicit HandlerPool(std::shared_ptr<rest::EventLoop> loop, HandlerPoolOptions options = {});
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
