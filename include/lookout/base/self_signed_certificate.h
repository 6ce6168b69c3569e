// SelfSignedCertificate: a certificate for a server in a test, or for one that clients do not verify.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "lookout/base/attributes.h"

namespace lookout {

/// A new key and a self-signed certificate for it, valid for a year. Creating one takes about a
/// millisecond.
class SelfSignedCertificate {
 public:
  /// `names`: the names of the server in OpenSSL's notation: "IP:127.0.0.1",
  /// "DNS:website-webhook.website-system.svc". Throws Error if one of them is invalid.
  explicit SelfSignedCertificate(const std::vector<std::string>& names = {"IP:127.0.0.1",
                                                                          "DNS:localhost"});

  /// PEM.
  const std::string& certificate() const LOOKOUT_LIFETIME_BOUND { return certificate_; }
  const std::string& key() const LOOKOUT_LIFETIME_BOUND { return key_; }
  /// The certificate in base64, as a caBundle has it in JSON and YAML. (The setters of typed drafts
  /// take the certificate itself, and encode it.)
  std::string ca_bundle() const;
  /// Writes tls.crt and tls.key into a folder, like a mounted Secret of type kubernetes.io/tls.
  /// Creates the folder if there is none. Throws Error, with the reason, on failure.
  void write_to(const std::filesystem::path& folder) const;

 private:
  std::string certificate_;
  std::string key_;
};

}  // namespace lookout
