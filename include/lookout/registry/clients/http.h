// HTTP requests to instances: what the clients for libcurl and Boost.Beast have in common.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lookout/base/attributes.h"
#include "lookout/registry/policy.h"

namespace lookout::registry {

/// A request to an instance, whatever its address is.
struct HttpRequest {
  LOOKOUT_OPTION std::string method = "GET";
  /// The path, and perhaps a query.
  LOOKOUT_OPTION std::string path = "/";
  LOOKOUT_OPTION std::vector<std::pair<std::string, std::string>> headers = {};
  LOOKOUT_OPTION std::string body = {};
};

struct HttpResponse {
  long status = 0;
  std::string body = {};
};

/// For Balancer::call(): a server that answers 500 or more has failed, and another instance is asked.
/// Every other answer is one.
inline Outcome judge_http(const HttpResponse& response) {
  return response.status >= 500 ? Outcome::kFailed : Outcome::kOk;
}

}  // namespace lookout::registry
