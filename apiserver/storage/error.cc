#include "lookout/apiserver/storage/error.h"

#include <fmt/format.h>

namespace lookout::apiserver::storage {
namespace {

std::string_view text_of(StorageError::Code code) {
  switch (code) {
    case StorageError::Code::kKeyNotFound:
      return "key not found";
    case StorageError::Code::kKeyExists:
      return "key exists";
    case StorageError::Code::kResourceVersionConflicts:
      return "resource version conflicts";
    case StorageError::Code::kInvalidObject:
      return "invalid object";
    case StorageError::Code::kUnreachable:
      return "server unreachable";
    case StorageError::Code::kTimeout:
      return "request timeout";
    case StorageError::Code::kCorruptObject:
      return "corrupt object";
  }
  return "";
}

}  // namespace

// Clients see this text in conflicts, so it is the API server's.
StorageError::StorageError(Code code, std::string key, Revision revision, std::string detail)
    : Error(fmt::format("StorageError: {}, Code: {}, Key: {}, ResourceVersion: {}, "
                        "AdditionalErrorMsg: {}",
                        text_of(code), static_cast<int>(code), key, revision,
                        detail.empty() ? "<nil>" : detail)),
      code_(code),
      key_(std::move(key)),
      revision_(revision) {}

}  // namespace lookout::apiserver::storage
