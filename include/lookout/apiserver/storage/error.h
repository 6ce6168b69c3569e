// Errors of storages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "lookout/api/error.h"

namespace lookout::apiserver::storage {

/// A number that grows with every change that the storage takes: etcd's revision, and the
/// resourceVersion of clients. 0 stands for none; the first one is 1.
using Revision = std::uint64_t;

/// A failure below the API (k8s.io/apiserver/pkg/storage.StorageError); resource handlers make a
/// Status of it.
///
/// Failures that are the client's business from the start (a resourceVersion that is too old or
/// lies in the future, a continue token that is none) are thrown as api::StatusError right away.
class StorageError : public Error {
 public:
  enum class Code {
    kKeyNotFound = 1,
    kKeyExists = 2,
    kResourceVersionConflicts = 3,
    kInvalidObject = 4,  ///< a precondition does not hold
    kUnreachable = 5,
    kTimeout = 6,
    kCorruptObject = 7
  };

  StorageError(Code code, std::string key, Revision revision = 0, std::string detail = {});

  Code code() const { return code_; }
  /// The whole key: "/registry/pods/shop/web-1".
  const std::string& key() const { return key_; }
  /// The revision of the data that was looked at; 0 if unknown.
  Revision revision() const { return revision_; }

 private:
  Code code_;
  std::string key_;
  Revision revision_;
};

}  // namespace lookout::apiserver::storage
