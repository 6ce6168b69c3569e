// The directives of strategic merge patches.
#pragma once

#include <string_view>

namespace lookout::api::detail::directive {

inline constexpr std::string_view kPatch = "$patch";
inline constexpr std::string_view kRetainKeys = "$retainKeys";
/// These two are followed by "/" and the name of their field.
inline constexpr std::string_view kDeleteFromPrimitiveList = "$deleteFromPrimitiveList";
inline constexpr std::string_view kSetElementOrder = "$setElementOrder";

/// The values of "$patch".
inline constexpr std::string_view kDelete = "delete";
inline constexpr std::string_view kReplace = "replace";
inline constexpr std::string_view kMerge = "merge";

inline bool is_directive(std::string_view name) {
  const auto is_about_a_field = [name](std::string_view prefix) {
    return name.starts_with(prefix) && name.substr(prefix.size()).starts_with('/');
  };
  return name == kPatch || name == kRetainKeys || is_about_a_field(kDeleteFromPrimitiveList) ||
         is_about_a_field(kSetElementOrder);
}

}  // namespace lookout::api::detail::directive
