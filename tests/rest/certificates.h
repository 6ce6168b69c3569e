// Creates certificates for tests.
#pragma once

#include <string>
#include <vector>

namespace lookout::test {

/// PEM.
struct KeyPair {
  std::string certificate;
  std::string key;
};

/// A self-signed certificate with a new key.
KeyPair make_certificate(const std::string& common_name);

struct CertificateOptions {
  std::string common_name = "test";
  /// Subject alternative names as OpenSSL writes them: "DNS:example.test", "IP:127.0.0.1".
  std::vector<std::string> names = {};
  bool expired = false;
};

/// Signs certificates for servers and clients.
class CertificateAuthority {
 public:
  explicit CertificateAuthority(const std::string& common_name = "test authority")
      : pair_(make_certificate(common_name)) {}

  const std::string& certificate() const { return pair_.certificate; }
  KeyPair issue(const CertificateOptions& options) const;
  /// For a server on 127.0.0.1.
  KeyPair issue_local() const;

 private:
  KeyPair pair_;
};

/// The key, encrypted with a passphrase.
std::string encrypt_key(const std::string& key);

}  // namespace lookout::test
