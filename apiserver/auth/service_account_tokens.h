// Signs and verifies tokens of service accounts.
#pragma once

#include <openssl/types.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "apiserver/auth/user.h"

namespace lookout::apiserver::auth {

/// An object that a token is bound to: its deletion invalidates the token.
struct BoundObject {
  std::string kind;  ///< "Pod", "Secret" or "Node"; empty for none
  std::string name = {};
  std::string uid = {};
};

/// The content of a token (k8s.io/kubernetes/pkg/serviceaccount).
struct TokenClaims {
  std::string ns;
  std::string account;
  std::string account_uid;
  BoundObject bound = {};
  /// The node of a bound pod.
  BoundObject node = {};
  std::vector<std::string> audiences = {};
  std::string id = {};
  /// In seconds since 1970.
  std::int64_t issued = 0;
  std::int64_t expires = 0;
  /// When the user should have requested a new token; 0: when it expires.
  std::int64_t warn_after = 0;

  User user() const;
};

/// The groups of a service account, without system:authenticated.
std::vector<std::string> groups_of_account(const std::string& ns);
std::string name_of_account(const std::string& ns, const std::string& name);

/// JSON Web Tokens with one key: RS256, or ES256. Safe to use from many threads.
class TokenSigner {
 public:
  /// Reads a private key (PEM: RSA, or EC on P-256). If `key_file` is empty, the first token generates
  /// a key. Throws lookout::Error.
  TokenSigner(const std::string& key_file, std::string issuer);
  ~TokenSigner();

  const std::string& issuer() const { return issuer_; }
  /// "RS256" or "ES256".
  std::string_view algorithm() const { return key().is_rsa ? "RS256" : "ES256"; }
  /// The public key, as a JSON Web Key.
  std::string public_key() const;

  std::string sign(const TokenClaims& claims) const;
  /// nullopt if the token has another issuer or key, expired more than a minute ago, or is from
  /// more than a minute in the future. Does not check the audiences.
  std::optional<TokenClaims> verify(std::string_view token, std::int64_t now) const;

 private:
  struct FreeKey {
    void operator()(EVP_PKEY* key) const;
  };

  struct Key {
    std::unique_ptr<EVP_PKEY, FreeKey> pair = nullptr;
    bool is_rsa = false;
    std::string id = {};
  };

  void use(EVP_PKEY* pair, const std::string& source) const;
  const Key& key() const;
  std::optional<TokenClaims> read(std::string_view token) const;
  std::string signature_of(std::string_view text) const;
  bool is_signature(std::string_view signature, std::string_view text) const;

  const std::string issuer_;
  mutable std::once_flag has_key_;
  mutable Key key_;
  mutable std::mutex mutex_;
  /// Tokens with a good signature, by digest; guarded by mutex_.
  mutable std::unordered_map<std::string, TokenClaims> known_;
};

}  // namespace lookout::apiserver::auth
