// Objects as values.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "lookout/api/object.h"
#include "lookout/apiserver/storage/error.h"

namespace lookout::apiserver::storage::etcd3 {

/// Turns objects into values and back. The resourceVersion is no part of a value: it is the
/// revision of its last change. Thread-safe.
class Codec {
 public:
  virtual ~Codec() = default;
  virtual std::string encode(const api::Object& object) const = 0;
  /// Throws api::DecodeError.
  virtual api::Object decode(std::string value, Revision revision) const = 0;
};

/// JSON as kube-apiserver keeps it (`--storage-media-type=application/json`).
std::shared_ptr<const Codec> json_codec();

/// An object with the resourceVersion of its last change.
api::Object at_revision(const api::Object& object, Revision revision);

}  // namespace lookout::apiserver::storage::etcd3
