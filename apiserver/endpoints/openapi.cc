#include "apiserver/endpoints/openapi.h"

#include <string>
#include <string_view>

#include "apiserver/endpoints/negotiation.h"
#include "lookout/api/resource.h"

namespace lookout::apiserver::endpoints {
namespace {

constexpr std::string_view kProtobuf = "application/com.github.proto-openapi.spec.v2";
constexpr std::string_view kTitle = "Kubernetes";

std::string version() { return "v" + std::string(api::schema_version()) + ".0"; }

/// A length-delimited field of a protobuf message; everything here is short.
std::string field(int number, std::string_view bytes) {
  std::string out;
  out += static_cast<char>(number << 3 | 2);
  out += static_cast<char>(bytes.size());
  return out.append(bytes);
}

// openapi.v2.Document: swagger = 1, info = 2 (title = 1, version = 2), paths = 8.
std::string protobuf_document() {
  return field(1, "2.0") + field(2, field(1, kTitle) + field(2, version())) + field(8, "");
}

std::string json_document() {
  return R"({"swagger":"2.0","info":{"title":")" + std::string(kTitle) + R"(","version":")" +
         version() + R"("},"paths":{},"definitions":{}})" + "\n";
}

}  // namespace

std::optional<http::Response> describe(const http::Request& request) {
  if (request.path != "/openapi/v2") return std::nullopt;
  http::Response response;
  for (const MediaRange& range : parse_accept(request.header("accept"))) {
    if (range.type == "application/json" || range.type == "*/*") break;
    // "...v2@v1.0+protobuf", and "...v2.v1.0+protobuf" since a '@' is not allowed there.
    if (range.type.starts_with(kProtobuf) && range.type.ends_with("+protobuf")) {
      response.content_type = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf";
      response.body = protobuf_document();
      return response;
    }
  }
  response.body = json_document();
  return response;
}

}  // namespace lookout::apiserver::endpoints
