// Codec: converts between objects and values in etcd.
#pragma once

#include <memory>
#include <string>

#include "lookout/api/object.h"
#include "lookout/apiserver/storage/error.h"

namespace lookout::apiserver::storage::etcd3 {

/// Encodes and decodes values. The resourceVersion is not in the value: it is the revision of the last
/// change. Thread-safe.
class Codec {
 public:
  /// A value, and the position of the omitted resourceVersion (0: the object has no metadata).
  struct Encoded {
    std::string value;
    std::size_t place = 0;
  };

  virtual ~Codec() = default;
  virtual Encoded encode_for(const api::Object& object) const = 0;
  std::string encode(const api::Object& object) const { return encode_for(object).value; }
  /// The JSON of the encoded object, with `revision` as its resourceVersion.
  virtual std::string json_of(const Encoded& encoded, Revision revision) const = 0;
  /// Throws api::DecodeError.
  virtual api::Object decode(std::string value, Revision revision) const = 0;
};

/// JSON as kube-apiserver stores it (`--storage-media-type=application/json`).
std::shared_ptr<const Codec> json_codec();

/// An object with the resourceVersion of its last change.
api::Object at_revision(const api::Object& object, Revision revision);

}  // namespace lookout::apiserver::storage::etcd3
