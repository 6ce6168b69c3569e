// AuditLog: an audit event for each request.
#pragma once

#include <fstream>
#include <mutex>
#include <string>

#include "apiserver/auth/impersonation.h"
#include "apiserver/auth/user.h"
#include "apiserver/endpoints/request_info.h"
#include "lookout/api/time.h"
#include "lookout/apiserver/server.h"
#include "lookout/base/http/message.h"

namespace lookout::apiserver::audit {

/// One answered request. The pointers and references are the caller's.
struct Event {
  const http::Request& request;
  const endpoints::RequestInfo& info;
  api::Time received;
  /// The Audit-Id, which is also a header of the response.
  std::string_view id;
  /// Null if authentication failed.
  const auth::User* user = nullptr;
  /// Null without impersonation.
  const auth::Impersonated* impersonated = nullptr;
  int code = 200;
  bool allowed = true;
  /// The authorizer's reason.
  std::string reason = {};
};

/// Appends events of audit.k8s.io/v1 to a file, as one line of JSON each. An event is written when
/// the response is ready; for watches, at the start. Thread-safe.
class AuditLog {
 public:
  /// Throws lookout::Error if the file cannot be opened.
  AuditLog(const std::string& file, AuditLevel level);

  void write(const Event& event);

 private:
  const AuditLevel level_;
  std::mutex mutex_;
  std::ofstream out_;  // guarded by mutex_
};

}  // namespace lookout::apiserver::audit
