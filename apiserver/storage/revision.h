// The revisions of objects.
#pragma once

#include <charconv>
#include <string_view>

#include "lookout/api/object.h"
#include "lookout/api/status.h"
#include "lookout/apiserver/storage/error.h"

namespace lookout::apiserver::storage {

/// The revision in the object's resourceVersion; 0 if it has none.
inline Revision revision_of(const api::Object& object) {
  const std::string_view text = object.resource_version();
  Revision revision = 0;
  std::from_chars(text.data(), text.data() + text.size(), revision);
  return revision;
}

/// The error if the storage does not reach a revision in time. As in Kubernetes, clients retry after a
/// second.
inline api::StatusError too_large(Revision asked, Revision newest) {
  constexpr int kRetryAfterSeconds = 1;
  return api::StatusError::too_large_resource_version(asked, newest, kRetryAfterSeconds);
}

}  // namespace lookout::apiserver::storage
