// Writes that may have been executed although they failed.
#pragma once

#include "lookout/api/status.h"
#include "lookout/apiserver/storage/error.h"

namespace lookout::apiserver::storage {

/// Whether a write that failed with this error may have been executed: the storage did not respond.
inline bool may_be_written(const StorageError& e) {
  return e.code() == StorageError::Code::kUnreachable || e.code() == StorageError::Code::kTimeout;
}

/// The same for other exceptions of the storage or of an object's write: with a server error, the object
/// may have been written.
inline bool may_be_written(const api::StatusError& e) {
  constexpr int kServerErrors = 500;
  return e.status().code >= kServerErrors;
}

}  // namespace lookout::apiserver::storage
