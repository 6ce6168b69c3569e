// The JSON of objects that were written a moment ago.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "lookout/api/object.h"

namespace lookout::apiserver::storage {

/// The compact JSON of an object. That of the last few is kept, for all threads: the response to a
/// write and the event for its watchers are the same object, which is encoded once.
std::shared_ptr<const std::string> shared_json(const api::Object& object);

/// Longer ones are not kept.
inline constexpr std::size_t kLongestShared = 16 * 1024;

/// `json` is what shared_json() would make of the object.
void share_json(const api::Object& object, std::string json);

}  // namespace lookout::apiserver::storage
