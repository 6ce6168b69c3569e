// The JSON of recently written objects.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "lookout/api/object.h"

namespace lookout::apiserver::storage {

/// The compact JSON of an object. The most recent ones are cached for all threads: a write's response and
/// its watch event are the same object, which is encoded once.
std::shared_ptr<const std::string> shared_json(const api::Object& object);

/// Longer texts are not cached.
inline constexpr std::size_t kLongestShared = 16 * 1024;

/// Caches `json`, which must equal shared_json() of the object.
void share_json(const api::Object& object, std::string json);

}  // namespace lookout::apiserver::storage
