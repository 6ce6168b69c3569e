// Manifests: objects in YAML or JSON, as people write them.
#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/api/error.h"
#include "lookout/api/object.h"

namespace lookout::api {

/// The objects of a text, in order. The text may have several documents ("---"), JSON objects that
/// follow each other, and lists, whose items count. Documents without content are skipped. Every
/// object has an apiVersion and a kind.
///
///     for (const api::Object& object : api::parse_manifests(text)) {
///       const auto* found = rest::find_resource(resources, object.gvk());
///       client.resource(found->resource, ns).apply(object, {.field_manager = "deploy"});
///     }
///
/// Throws DecodeError for text that is not YAML or not an object. Its message names the line, and
/// quotes nothing of the text, which may contain secrets.
std::vector<Object> parse_manifests(std::string_view text);

/// The callbacks of read_manifests(). `line` is the line of the object or of the error, from 1.
struct ManifestHandler {
  std::function<void(Object object, int line)> on_object;
  std::function<void(const std::string& why, int line)> on_error;
};
/// Like parse_manifests(), but continues after a malformed object. Stops after a document that is not
/// YAML.
void read_manifests(std::string_view text, const ManifestHandler& handler);

}  // namespace lookout::api
