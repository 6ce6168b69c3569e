// HTTP with libcurl for Balancer::call(): keeps to the time of the attempt, and to its stop.
#pragma once

#include <string>

#include "lookout/registry/call.h"

namespace example {

struct Response {
  long status = 0;
  std::string body = {};
};

/// For Balancer::call(): an overloaded or broken server has failed, whatever else it says.
inline lookout::registry::Outcome judge(const Response& response) {
  return response.status >= 500 ? lookout::registry::Outcome::kFailed
                                : lookout::registry::Outcome::kOk;
}

/// Keeps connections for the thread that uses it. Not thread-safe.
class CurlClient {
 public:
  CurlClient();
  ~CurlClient();
  CurlClient(const CurlClient&) = delete;
  CurlClient& operator=(const CurlClient&) = delete;

  /// Throws std::runtime_error if there is no response in the time of the attempt.
  Response get(const std::string& url, const lookout::registry::Attempt& attempt);

 private:
  void* curl_;
};

}  // namespace example
