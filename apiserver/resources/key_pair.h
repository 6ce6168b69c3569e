// Validates the certificate and private key of a TLS secret.
#pragma once

#include <string>

namespace lookout::apiserver::resources {

/// The error of Go's crypto/tls.X509KeyPair for a pair in PEM; empty if the pair is valid.
std::string fault_of_key_pair(const std::string& certificate, const std::string& key);

}  // namespace lookout::apiserver::resources
