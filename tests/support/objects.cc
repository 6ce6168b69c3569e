#include "tests/support/objects.h"

#include <fmt/format.h>

#include "lookout/api/detail/object_header.h"

namespace lookout::test {
namespace {

std::string metadata(std::string_view key, std::string_view resource_version) {
  const std::size_t slash = key.find('/');
  std::string out = R"("metadata":{)";
  if (slash != std::string_view::npos)
    out += fmt::format(R"("namespace":"{}",)", key.substr(0, slash));
  const std::string_view name = slash == std::string_view::npos ? key : key.substr(slash + 1);
  if (!name.empty()) out += fmt::format(R"("name":"{}",)", name);
  return out + fmt::format(R"("resourceVersion":"{}")", resource_version);
}

}  // namespace

api::Object pod(std::string_view key, std::string_view resource_version, const PodSpec& spec) {
  std::string json = R"({"apiVersion":"v1","kind":"Pod",)" + metadata(key, resource_version);
  if (!spec.labels.empty()) {
    json += R"(,"labels":{)";
    for (const auto& [name, value] : spec.labels) json += fmt::format(R"("{}":"{}",)", name, value);
    json.back() = '}';
  }
  if (!spec.note.empty()) json += fmt::format(R"(,"annotations":{{"note":"{}"}})", spec.note);
  json += '}';
  if (!spec.node.empty()) json += fmt::format(R"(,"spec":{{"nodeName":"{}"}})", spec.node);
  return api::Object::parse(json + '}');
}

api::Object object_of_kind(std::string_view api_version, std::string_view kind,
                           std::string_view key, std::string_view resource_version) {
  return api::Object::parse(fmt::format(R"({{"apiVersion":"{}","kind":"{}",{}}}}})", api_version,
                                        kind, metadata(key, resource_version)));
}

std::size_t references(const api::Object& object) {
  return object.header()->references.load(std::memory_order_acquire);
}

}  // namespace lookout::test
