#include "lookout/tools/cache/key.h"

#include <fmt/format.h>

#include "lookout/api/error.h"
#include "lookout/tools/cache/index.h"

namespace lookout::cache {

std::string meta_namespace_key(const api::Object& object) {
  if (object.name().empty()) throw InvalidArgument("an object without metadata.name has no key");
  return object.key();
}

ObjectName split_meta_namespace_key(std::string_view key) {
  const std::size_t slash = key.find('/');
  if (slash == std::string_view::npos) return {{}, key};
  if (key.find('/', slash + 1) != std::string_view::npos) {
    throw InvalidArgument(fmt::format("unexpected key format: \"{}\"", key));
  }
  return {key.substr(0, slash), key.substr(slash + 1)};
}

void index_by_namespace(const api::Object& object, IndexValues& values) { values.add(object.ns()); }

Indexers::value_type index_by_label(std::string_view label) {
  return {label_index_name(label),
          [label = std::string(label)](const api::Object& object, IndexValues& values) {
            if (const api::Value value = object.labels()[label]; value.exists())
              values.add(value.as_string());
          }};
}

std::string label_index_name(std::string_view label) { return "label:" + std::string(label); }

}  // namespace lookout::cache
