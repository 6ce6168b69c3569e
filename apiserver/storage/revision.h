// Revisions, as objects carry them.
#pragma once

#include <charconv>
#include <string_view>

#include "lookout/api/object.h"
#include "lookout/apiserver/storage/error.h"

namespace lookout::apiserver::storage {

/// The revision in the object's resourceVersion; 0 if it has none.
inline Revision revision_of(const api::Object& object) {
  const std::string_view text = object.resource_version();
  Revision revision = 0;
  std::from_chars(text.data(), text.data() + text.size(), revision);
  return revision;
}

}  // namespace lookout::apiserver::storage
