// Transformer: encryption at rest.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/api/error.h"

namespace lookout::apiserver::storage {

/// A stored value is not readable: no key fits, or the value was modified.
class TransformError : public Error {
 public:
  using Error::Error;
};

/// Converts values to their stored form and back (k8s.io/apiserver/pkg/storage/value.Transformer).
/// `context` is the full key of the value and is authenticated with it, so a value cannot be moved
/// to another key. Thread-safe.
class Transformer {
 public:
  virtual ~Transformer() = default;

  struct Read {
    std::string value;
    /// True if the value should be rewritten, because it was written with another transformer or
    /// key.
    bool stale = false;
  };
  /// Throws TransformError.
  virtual Read from_storage(std::string stored, std::string_view context) const = 0;
  virtual std::string to_storage(std::string value, std::string_view context) const = 0;
};

using TransformerPtr = std::shared_ptr<const Transformer>;

/// Leaves values unchanged. Cannot read encrypted values.
TransformerPtr identity_transformer();

/// A name and a key of 16, 24 or 32 bytes.
struct EncryptionKey {
  std::string name;
  std::string secret;
};

/// AES-GCM with random nonces of 12 bytes and without a prefix, for prefix_transformer(). Throws
/// InvalidArgument for another key length.
TransformerPtr aes_gcm_transformer(std::string_view secret);

/// Values whose prefix names their transformer. The first transformer writes; each reads its own
/// values.
struct PrefixedTransformer {
  std::string prefix;  ///< "k8s:enc:aesgcm:v1:key1:"; empty for the identity
  TransformerPtr transformer;
};
TransformerPtr prefix_transformer(std::vector<PrefixedTransformer> transformers);

/// Encrypts as kube-apiserver's EncryptionConfiguration does with `aesgcm: {keys: [...]}`, followed
/// by `identity: {}` if `reads_plain`.
TransformerPtr aes_gcm_encryption(const std::vector<EncryptionKey>& keys, bool reads_plain);

}  // namespace lookout::apiserver::storage
