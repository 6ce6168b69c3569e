// A watcher that calls instead of being asked.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "lookout/informer/handler_pool.h"
#include "registry/user_calls.h"
#include "registry/watcher_core.h"

namespace lookout::registry::detail {

/// Calls a function with what a WatcherCore has to take, on a pool, one call at a time. It has one
/// task on the pool at most, whatever happens while that is held up.
class CallbackLoop : public std::enable_shared_from_this<CallbackLoop> {
 public:
  CallbackLoop(std::string service, std::shared_ptr<WatcherCore> core, SetCallback callback,
               std::shared_ptr<informer::HandlerPool> pool, std::shared_ptr<UserCalls> calls);

  /// From now on it is called.
  void start();
  /// Waits for a running call, unless it is made from it.
  void cancel();

 private:
  void schedule();
  void drain();
  bool call_once();

  const std::string what_;  // for messages
  const std::shared_ptr<WatcherCore> core_;
  const std::shared_ptr<informer::HandlerPool> pool_;
  const std::shared_ptr<UserCalls> calls_;
  SetCallback callback_;

  std::mutex mutex_;
  std::condition_variable changed_;
  // Guarded by mutex_.
  bool scheduled_ = false;
  bool again_ = false;
  bool cancelled_ = false;
  std::thread::id caller_;  // the thread that is in the callback
};

}  // namespace lookout::registry::detail
