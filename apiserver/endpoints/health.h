// Whether the server works: /healthz, /livez and /readyz.
#pragma once

#include <atomic>

#include "lookout/apiserver/storage/interface.h"
#include "lookout/base/http/message.h"

namespace lookout::apiserver::endpoints {

/// Responds in the API server's format: "ok" or, with ?verbose and on failure, a line per check.
/// /readyz/storage runs one check, and ?exclude=NAME omits one. The check of a storage in etcd is
/// "etcd", and /readyz also has "etcd-readiness". Thread-safe.
class Health {
 public:
  explicit Health(storage::Backend& storage) : storage_(storage) {}

  /// Makes /readyz fail.
  void begin_shutdown() { shutting_down_ = true; }

  static bool is_check(const http::Request& request);
  /// The paths of all checks.
  std::vector<std::string> paths() const;
  Awaitable<http::Response> answer(const http::Request& request) const;

 private:
  std::vector<std::string> checks_of(std::string_view name) const;
  Awaitable<bool> check_storage() const;
  bool asks_storage(std::string_view check) const;
  Awaitable<http::Response> answer_one(std::string check) const;

  storage::Backend& storage_;
  std::atomic<bool> shutting_down_{false};
};

}  // namespace lookout::apiserver::endpoints
