// Whether the server works: /healthz, /livez and /readyz.
#pragma once

#include <atomic>
#include <optional>

#include "lookout/apiserver/storage/interface.h"
#include "lookout/base/http/message.h"

namespace lookout::apiserver::endpoints {

/// Answers in the API server's form: "ok", or, with ?verbose and on failure, a line for each check;
/// /readyz/storage asks for one check, and ?exclude=NAME leaves one out. A storage in etcd is
/// called "etcd", and /readyz has "etcd-readiness" as well. Safe to use from many threads.
class Health {
 public:
  explicit Health(storage::Backend& storage) : storage_(storage) {}

  /// From now on the server is not ready.
  void begin_shutdown() { shutting_down_ = true; }

  static bool is_check(const http::Request& request);
  Awaitable<http::Response> answer(const http::Request& request) const;

 private:
  Awaitable<bool> check_storage() const;

  storage::Backend& storage_;
  std::atomic<bool> shutting_down_{false};
};

}  // namespace lookout::apiserver::endpoints
