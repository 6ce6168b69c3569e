// Encryption at rest: the choice of encrypted resources.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "lookout/apiserver/storage/transformer.h"

namespace lookout::apiserver {

/// Returns the transformer for the values of a resource, given its place in the storage ("secrets",
/// "stable.example.com/crontabs"); null: no encryption. For storage::EtcdOptions::transformer.
using Encryption =
    std::function<std::shared_ptr<const storage::Transformer>(std::string_view place)>;

/// Parses an EncryptionConfiguration (apiserver.config.k8s.io/v1), the file of kube-apiserver's
/// --encryption-provider-config. For a resource, the first entry that matches counts ("secrets",
/// "deployments.apps", "*.apps", "*." for the core group, "*.*"); its first provider writes, and
/// all its providers read. The supported providers are aesgcm and identity. Throws lookout::Error;
/// the message never contains keys.
Encryption read_encryption_config(std::string_view text);
/// Like read_encryption_config(), for a file.
Encryption load_encryption_config(const std::string& file);

}  // namespace lookout::apiserver
