// Small objects for tests.
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/api/object.h"

namespace lookout::test {

struct PodSpec {
  std::map<std::string, std::string> labels = {};
  std::string node = {};  ///< spec.nodeName
  std::string note = {};  ///< an annotation: content that distinguishes versions
};

/// A Pod with this key: "namespace/name", or "name" for one without a namespace.
api::Object pod(std::string_view key, std::string_view resource_version = "1",
                const PodSpec& spec = {});
inline api::Object pod(std::string_view key, std::size_t resource_version,
                       const PodSpec& spec = {}) {
  return pod(key, std::to_string(resource_version), spec);
}

/// An object of any type with metadata only.
api::Object object_of_kind(std::string_view api_version, std::string_view kind,
                           std::string_view key, std::string_view resource_version = "1");

/// The keys of objects, in their order.
template <class Range>
std::vector<std::string> keys(const Range& objects) {
  std::vector<std::string> out;
  for (const auto& object : objects) out.push_back(object.key());
  return out;
}

/// The number of handles to this object, including the caller's.
std::size_t references(const api::Object& object);

}  // namespace lookout::test
