#include "apiserver/endpoints/openapi.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <chrono>
#include <string>
#include <string_view>

#include "apiserver/endpoints/caching.h"
#include "apiserver/endpoints/negotiation.h"

namespace lookout::apiserver::endpoints {
namespace {

constexpr std::string_view kIndex = "/openapi/v3";
constexpr std::string_view kGnostic = "application/com.github.proto-openapi.spec.v2";

constexpr std::chrono::hours kYear{24 * 365};

std::string http_date(std::chrono::system_clock::time_point time) {
  return fmt::format("{:%a, %d %b %Y %H:%M:%S GMT}",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(time)));
}

enum class Encoding { kNone, kJson, kProtobuf };

/// The first served type that the client accepts.
Encoding negotiate(const http::Request& request) {
  const std::string_view header = request.header("accept");
  if (header.empty()) return Encoding::kJson;
  for (const MediaRange& range : parse_accept(header)) {
    if (range.type == "application/json" || range.type == "application/*" || range.type == "*/*")
      return Encoding::kJson;
    // "...v2@v1.0+protobuf", and "...v2.v1.0+protobuf" since a '@' is not allowed there.
    if (range.type.starts_with(kGnostic) && range.type.ends_with("+protobuf"))
      return Encoding::kProtobuf;
  }
  return Encoding::kNone;
}

}  // namespace

std::optional<http::Response> describe(const http::Request& request,
                                       openapi::Documents& documents) {
  const bool v2 = request.path == "/openapi/v2";
  const bool index = request.path == kIndex || request.path == "/openapi/v3/";
  if (!v2 && !request.path.starts_with(kIndex)) return std::nullopt;
  const Encoding encoding = negotiate(request);
  if (encoding == Encoding::kNone || (!v2 && encoding == Encoding::kProtobuf))
    return http::Response::text(406, "");
  http::Response response;
  openapi::WireDocumentPtr document;
  if (v2 && encoding == Encoding::kProtobuf) {
    response.content_type = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
    document = documents.v2_protobuf();
  } else if (v2) {
    document = documents.v2_json();
  } else if (index) {
    document = documents.v3_index();
  } else {
    document = documents.v3(request.path.substr(kIndex.size() + 1));
  }
  if (!document) return std::nullopt;
  response.body = document->text;
  const auto hash = request.parameter("hash");
  if (v2 || index || !hash || hash->empty()) {
    response.headers.emplace_back("Cache-Control", "no-cache, private");
  } else if (*hash == document->hash) {
    response.headers.emplace_back("Cache-Control", "public, immutable");
    response.headers.emplace_back("Expires", http_date(std::chrono::system_clock::now() + kYear));
  } else {
    response = http::Response::text(301, "");
    response.headers.emplace_back("Location",
                                  fmt::format("{}?hash={}", request.path, document->hash));
    return response;
  }
  response.headers.emplace_back("Vary", "Accept");
  set_etag(request, document->hash, response);
  return response;
}

}  // namespace lookout::apiserver::endpoints
