#include "apiserver/endpoints/yaml.h"

#include <fmt/format.h>

#include <utility>
#include <vector>

#include "apiserver/endpoints/negotiation.h"
#include "lookout/api/detail/yaml_writer.h"
#include "lookout/api/protobuf.h"
#include "lookout/api/status.h"
#include "lookout/base/yaml_tree.h"

namespace lookout::apiserver::endpoints {
namespace {

constexpr std::string_view kYaml = "application/yaml";

}  // namespace

void turn_body_into_json(http::Request& request) {
  if (request.body.empty() || request.method == "PATCH" ||
      media_type(request.header("content-type")) != kYaml)
    return;
  try {
    const YamlTree tree(request.body);
    request.body = to_json(tree.root());
  } catch (const YamlError& e) {
    throw api::StatusError::bad_request(
        fmt::format("error converting YAML to JSON: yaml: line {}: {}", e.line(), e.what()));
  }
  request.headers.insert_or_assign("content-type", "application/json");
}

bool prefers_yaml(const http::Request& request) {
  const auto watch = request.parameter("watch");
  for (const MediaRange& range : parse_accept(request.header("accept"))) {
    if (range.type == kYaml) return range.parameter("as").empty() && (!watch || watch->empty());
    if (range.type.starts_with("application/") || range.type == "*/*") return false;
  }
  return false;
}

Awaitable<void> turn_into_yaml(http::Response& response) {
  if (response.content_type != "application/json") co_return;
  if (response.stream != nullptr) {
    std::vector<http::Piece> pieces;
    for (bool more = true; more;) {
      more = co_await response.stream->next(pieces);
      for (const http::Piece& piece : pieces) response.body += *piece;
    }
    response.stream = nullptr;
  }
  try {
    response.body = api::detail::to_yaml(response.body);
  } catch (const Error&) {
    co_return;  // too deep for YAML: the client gets JSON
  }
  response.content_type = kYaml;
}

}  // namespace lookout::apiserver::endpoints
