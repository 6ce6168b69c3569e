#include "apiserver/endpoints/caching.h"

#include <fmt/format.h>

namespace lookout::apiserver::endpoints {

void set_etag(const http::Request& request, const std::string& hash, http::Response& response) {
  const std::string tag = fmt::format("\"{}\"", hash);
  response.headers.emplace_back("ETag", tag);
  if (request.header("if-none-match") != tag) return;
  response.status = 304;
  response.body.clear();
}

}  // namespace lookout::apiserver::endpoints
