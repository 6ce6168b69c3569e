// CallbackLoop: a watcher that calls a function.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>

#include "lookout/informer/handler_pool.h"
#include "registry/user_calls.h"
#include "registry/watcher_core.h"

namespace lookout::registry::detail {

/// Calls a function with the results of a WatcherCore, on a pool, one call at a time. Has at most one
/// task on the pool.
class CallbackLoop : public std::enable_shared_from_this<CallbackLoop> {
 public:
  CallbackLoop(std::string service, std::shared_ptr<WatcherCore> core, SetCallback callback,
               std::shared_ptr<informer::HandlerPool> pool, std::shared_ptr<UserCalls> calls);

  /// Starts the calls.
  void start();
  /// Ends the calls. Waits for a running call, unless called from it.
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
  std::thread::id caller_;  // the thread in the callback
};

}  // namespace lookout::registry::detail
