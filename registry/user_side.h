// UserSide: runs the user's functions.
#pragma once

#include <memory>

#include "lookout/base/event_loop.h"
#include "lookout/informer/handler_pool.h"
#include "registry/call_queue.h"
#include "registry/user_calls.h"

namespace lookout::registry::detail {

/// The threads for the user's functions, their running calls, and the queues of reports.
struct UserSide {
  UserSide(const std::shared_ptr<EventLoop>& loop, const informer::HandlerPoolOptions& options)
      : pool(std::make_shared<informer::HandlerPool>(loop, options)) {}

  const std::shared_ptr<informer::HandlerPool> pool;
  const std::shared_ptr<UserCalls> calls = std::make_shared<UserCalls>();
  const std::shared_ptr<CallQueue> malformed =
      std::make_shared<CallQueue>("on_malformed", pool, calls);
  const std::shared_ptr<CallQueue> failures = std::make_shared<CallQueue>("on_error", pool, calls);
};

}  // namespace lookout::registry::detail
