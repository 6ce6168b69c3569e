// Values as they are kept: encryption at rest.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/api/error.h"

namespace lookout::apiserver::storage {

/// A value that cannot be read: no key fits, or it is not what was written there.
class TransformError : public Error {
 public:
  using Error::Error;
};

/// Turns values into what is kept, and back (k8s.io/apiserver/pkg/storage/value.Transformer).
/// `context` is the whole key of the value, which is authenticated along with it: a value cannot be
/// moved to another key. Thread-safe.
class Transformer {
 public:
  virtual ~Transformer() = default;

  struct Read {
    std::string value;
    /// Written in another way than it would be now: to be written again.
    bool stale = false;
  };
  /// Throws TransformError.
  virtual Read from_storage(std::string stored, std::string_view context) const = 0;
  virtual std::string to_storage(std::string value, std::string_view context) const = 0;
};

using TransformerPtr = std::shared_ptr<const Transformer>;

/// Leaves values as they are. Does not read what was encrypted.
TransformerPtr identity_transformer();

/// A name and a key of 16, 24 or 32 bytes.
struct EncryptionKey {
  std::string name;
  std::string secret;
};

/// AES-GCM with nonces of 12 random bytes. Without a prefix: for use in prefix_transformer().
/// Throws InvalidArgument for a key of another length.
TransformerPtr aes_gcm_transformer(std::string_view secret);

/// Values that say by their beginning who wrote them. The first one writes; each reads its own.
struct PrefixedTransformer {
  std::string prefix;  ///< "k8s:enc:aesgcm:v1:key1:"; empty for the identity
  TransformerPtr transformer;
};
TransformerPtr prefix_transformer(std::vector<PrefixedTransformer> transformers);

/// Encrypts as kube-apiserver's EncryptionConfiguration with `aesgcm: {keys: [...]}` does, with
/// `identity: {}` behind it if `reads_plain`.
TransformerPtr aes_gcm_encryption(const std::vector<EncryptionKey>& keys, bool reads_plain);

}  // namespace lookout::apiserver::storage
