// Detection of reads from fields that a projection dropped: such a bug looks like an absent field.
#pragma once

#include <cstdint>
#include <string_view>

namespace lookout::api::detail {

struct ObjectHeader;
struct ProjectionNode;

/// True if the library detects such reads. Builds with NDEBUG do not, and pay nothing.
#ifdef NDEBUG
inline constexpr bool kProjectionsAreChecked = false;
#else
inline constexpr bool kProjectionsAreChecked = true;
#endif

/// Records that the object was made under this projection. Safe to call from several threads, as
/// are the functions below.
void note_projected(const ObjectHeader* object, const ProjectionNode* root);
/// Removes the record of an object, which is about to be freed.
void forget_projected(const ObjectHeader* object);

/// Reports that the value at `data` has no member of this name. If a projection dropped the member,
/// prints a message to standard error, once for each path.
void note_absent(const std::uint8_t* data, std::string_view name);

}  // namespace lookout::api::detail
