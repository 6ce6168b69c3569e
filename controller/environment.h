// Environment: the data that all reconciles of a controller share.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "controller/cache_core.h"
#include "controller/reconcile_ids.h"
#include "lookout/api/resource.h"
#include "lookout/controller/event_sink.h"
#include "lookout/rest/client.h"

namespace lookout::controller::detail {

struct Environment {
  rest::Client client;
  std::shared_ptr<CacheCore> cache;
  std::shared_ptr<EventSink> events;
  std::string controller;
  api::Resource primary;
  std::vector<api::Resource> owned;
  std::vector<api::Resource> shared;
  /// Throws LeadershipLostError if this process may no longer write.
  std::function<void()> require_leadership;
  /// True if it may; checked when a write is sent (rest::CallOptions::may_send).
  std::function<bool()> may_write;
  bool read_your_writes = true;
  std::shared_ptr<ReconcileIds> ids = std::make_shared<ReconcileIds>();
};

}  // namespace lookout::controller::detail
