// Reading what a projection has left out: an error that looks like an absent field.
#pragma once

#include <cstdint>
#include <string_view>

namespace lookout::api::detail {

struct ObjectHeader;
struct ProjectionNode;

/// Whether it is looked for: not in builds with NDEBUG, where none of this costs anything.
#ifdef NDEBUG
inline constexpr bool kProjectionsAreChecked = false;
#else
inline constexpr bool kProjectionsAreChecked = true;
#endif

/// The object was made under this projection (its root). Safe to call from several threads, as are
/// those below.
void note_projected(const ObjectHeader* object, const ProjectionNode* root);
/// The object is about to go.
void forget_projected(const ObjectHeader* object);

/// A member of this name was looked for in the value at `data`, and there is none: if that is
/// because a projection has left it out, standard error is told so, once for each path.
void note_absent(const std::uint8_t* data, std::string_view name);

}  // namespace lookout::api::detail
