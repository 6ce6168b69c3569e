// Pairs of a certificate and its private key, as secrets of TLS have them.
#pragma once

#include <string>

namespace lookout::apiserver::resources {

/// What is wrong with a pair in PEM, in the words of Go's crypto/tls.X509KeyPair; empty if nothing is.
std::string fault_of_key_pair(const std::string& certificate, const std::string& key);

}  // namespace lookout::apiserver::resources
