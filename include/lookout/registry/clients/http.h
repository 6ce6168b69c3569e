// HTTP requests to instances, for the clients with libcurl and Boost.Beast.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "lookout/base/attributes.h"
#include "lookout/registry/policy.h"

namespace lookout::registry {

/// A request to an instance, independent of its address.
struct HttpRequest {
  LOOKOUT_OPTION std::string method = "GET";
  /// The path, optionally with a query.
  LOOKOUT_OPTION std::string path = "/";
  LOOKOUT_OPTION std::vector<std::pair<std::string, std::string>> headers = {};
  LOOKOUT_OPTION std::string body = {};
};

struct HttpResponse {
  long status = 0;
  std::string body = {};
};

/// For Balancer::call(): status 500 and above is a failure, so another instance is tried. Every
/// other response is a success.
inline Outcome judge_http(const HttpResponse& response) {
  return response.status >= 500 ? Outcome::kFailed : Outcome::kOk;
}

}  // namespace lookout::registry
