// Storage errors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lookout/api/error.h"

namespace lookout::apiserver::storage {

/// A number that grows with every change in the storage: etcd's revision, and the resourceVersion
/// of clients. 0 means none; the first revision is 1.
using Revision = std::uint64_t;

/// A failure below the API (k8s.io/apiserver/pkg/storage.StorageError); resource handlers convert
/// it to a Status.
///
/// Failures that the client caused directly (an expired or future resourceVersion, an invalid
/// continue token) are thrown as api::StatusError.
class StorageError : public Error {
 public:
  enum class Code {
    kKeyNotFound = 1,
    kKeyExists = 2,
    kResourceVersionConflicts = 3,
    kInvalidObject = 4,  ///< a precondition failed
    kUnreachable = 5,
    kTimeout = 6,
    kCorruptObject = 7
  };

  StorageError(Code code, std::string key, Revision revision = 0, std::string detail = {});

  Code code() const { return code_; }
  /// The full key: "/registry/pods/shop/web-1".
  const std::string& key() const { return key_; }
  /// The revision of the data that was read; 0 if unknown.
  Revision revision() const { return revision_; }

 private:
  Code code_;
  std::string key_;
  Revision revision_;
};

}  // namespace lookout::apiserver::storage
