// The objects of loads, as a server would send them.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace lookout::bench {

/// Placeholders for values that differ between objects. Replacing them by the same number of digits
/// keeps an encoded object's length.
namespace marker {
inline constexpr std::string_view kNumber = "7700000001";      ///< in name and uid
inline constexpr std::string_view kVersion = "7700000002";     ///< the resourceVersion
inline constexpr std::string_view kNamespace = "ns-7703";      ///< the namespace
inline constexpr std::string_view kSent = "7700000000000004";  ///< microseconds since 1970
}  // namespace marker

/// The annotation with the time at which the server sent an object.
inline constexpr std::string_view kSentAnnotation = "lookout.dev/sent";

/// A type of object for loads.
struct ObjectType {
  std::string_view group_version;
  std::string_view kind;
  std::string_view plural;
  bool namespaced = true;
  /// A variant of the object with the markers, about `bytes` of JSON long if the type has a variable
  /// size (pods, config maps).
  std::string (*json)(std::size_t variant, std::size_t bytes) = nullptr;
};

/// Pods, nodes, endpoint slices, config maps and a custom resource.
const std::vector<ObjectType>& object_types();
/// Null if there is none.
const ObjectType* object_type(std::string_view plural);

/// The number of variants.
inline constexpr std::size_t kVariants = 64;

/// The JSON of an object without markers, for use without a server.
std::string object_json(const ObjectType& type, std::size_t number, std::size_t bytes);

}  // namespace lookout::bench
