#include "apiserver/endpoints/yaml.h"

#include <fmt/format.h>

#include <unordered_set>

#include "apiserver/endpoints/negotiation.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/api/detail/yaml_writer.h"
#include "lookout/api/protobuf.h"
#include "lookout/api/status.h"

namespace lookout::apiserver::endpoints {
namespace {

void find_repeated(const YamlNode& node, std::vector<std::string>& out) {
  for (const YamlNode* item : node.items) find_repeated(*item, out);
  std::unordered_set<std::string_view> seen;
  for (const auto& [key, value] : node.fields) {
    find_repeated(*value, out);
    if (seen.insert(key).second) continue;
    out.push_back(
        fmt::format("line {}: key {} already set in map", value->line, api::detail::quote(key)));
  }
}

}  // namespace

YamlBody read_yaml(std::string_view text) {
  try {
    const YamlTree tree(text);
    return {to_json(tree.root()), repeated_keys(tree.root())};
  } catch (const YamlError& e) {
    throw api::StatusError::bad_request(
        fmt::format("error converting YAML to JSON: yaml: line {}: {}", e.line(), e.what()));
  }
}

std::vector<std::string> repeated_keys(const YamlNode& node) {
  std::vector<std::string> out;
  find_repeated(node, out);
  return out;
}

std::string unmarshal_errors(const std::vector<std::string>& repeated) {
  return fmt::format("yaml: unmarshal errors:\n  {}", fmt::join(repeated, "\n  "));
}

bool prefers_yaml(const http::Request& request) {
  for (const MediaRange& range : parse_accept(request.header("accept"))) {
    if (range.type == kYamlType) return range.parameter("as").empty();
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
  response.content_type = kYamlType;
}

}  // namespace lookout::apiserver::endpoints
