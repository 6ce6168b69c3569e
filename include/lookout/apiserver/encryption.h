// Which resources are encrypted at rest.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "lookout/apiserver/storage/transformer.h"

namespace lookout::apiserver {

/// For each place in the storage ("secrets", "stable.example.com/crontabs") how its values are
/// kept; null for as they are. For storage::EtcdOptions::transformer.
using Encryption =
    std::function<std::shared_ptr<const storage::Transformer>(std::string_view place)>;

/// Reads the text of an EncryptionConfiguration (apiserver.config.k8s.io/v1), as kube-apiserver has
/// it behind --encryption-provider-config: the first entry whose resources have the resource counts
/// ("secrets", "deployments.apps", "*.apps", "*."  for the core group, "*.*"), and of it the first
/// provider writes and all read. The known providers are aesgcm and identity. Throws
/// lookout::Error, which repeats nothing of the keys.
Encryption read_encryption_config(std::string_view text);
/// The same from a file.
Encryption load_encryption_config(const std::string& file);

}  // namespace lookout::apiserver
