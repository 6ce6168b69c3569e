// Headers and trailers of HTTP/2.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lookout::apiserver::grpc {

/// Names are in lower case, values are unchanged. Several may have the same name.
using Headers = std::vector<std::pair<std::string, std::string>>;

/// The value of the first header with this name; empty if there is none.
inline std::string_view find_header(const Headers& headers, std::string_view name) {
  for (const auto& [found, value] : headers) {
    if (found == name) return value;
  }
  return {};
}

}  // namespace lookout::apiserver::grpc
