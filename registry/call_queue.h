// CallQueue: asynchronous calls of user code.
#pragma once

#include <cstddef>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>

#include "lookout/informer/handler_pool.h"
#include "registry/user_calls.h"

namespace lookout::registry::detail {

/// Calls a user function on a pool, one call at a time and in order. While a call blocks, only the
/// newest call per key is kept, for at most kMaxPending keys.
class CallQueue : public std::enable_shared_from_this<CallQueue> {
 public:
  static constexpr std::size_t kMaxPending = 10'000;

  /// `what` is the function's name in messages.
  CallQueue(std::string what, std::shared_ptr<informer::HandlerPool> pool,
            std::shared_ptr<UserCalls> calls);

  /// Does not block. Thread-safe.
  void post(const std::string& key, std::function<void()> call);

 private:
  void drain();

  const std::string what_;
  const std::shared_ptr<informer::HandlerPool> pool_;
  const std::shared_ptr<UserCalls> calls_;

  std::mutex mutex_;
  // Guarded by mutex_.
  std::deque<std::string> order_;  // the keys of pending_
  std::unordered_map<std::string, std::function<void()>> pending_;
  bool scheduled_ = false;
};

}  // namespace lookout::registry::detail
