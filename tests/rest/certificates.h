// Certificates that tests make as they need them.
#pragma once

#include <string>

namespace lookout::test {

/// PEM.
struct KeyPair {
  std::string certificate;
  std::string key;
};

/// A self-signed certificate with a new key.
KeyPair make_certificate(const std::string& common_name);

/// The key, encrypted with a passphrase.
std::string encrypt_key(const std::string& key);

}  // namespace lookout::test
