// Authenticator: determines the user of a request.
#pragma once

#include <array>
#include <optional>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/auth/service_account_tokens.h"
#include "apiserver/auth/user.h"
#include "apiserver/resources/served_resource.h"
#include "lookout/api/object.h"
#include "lookout/api/time.h"
#include "lookout/base/attributes.h"
#include "lookout/base/event_loop.h"
#include "lookout/base/http/message.h"

namespace lookout::apiserver::auth {

/// Tokens and their users. Immutable.
class TokenTable {
 public:
  /// Reads kube-apiserver's token file: lines of `token,user,uid,"group1,group2"`, the groups being
  /// optional. Throws lookout::Error with the file and the line.
  static TokenTable from_file(const std::string& path);
  /// The same from text; `name` is for messages.
  static TokenTable parse(std::string_view text, const std::string& name);

  void add(std::string_view token, User user);
  /// nullopt if the token is unknown. Takes constant time.
  std::optional<User> find(std::string_view token) const;
  bool empty() const { return entries_.empty(); }

 private:
  using Digest = std::array<unsigned char, 32>;
  struct Entry {
    Digest digest;
    User user;
  };
  static Digest digest(std::string_view token);
  std::vector<Entry> entries_;
};

/// The user from a request's credentials, before the check against the storage.
struct Identity {
  User user;
  /// Set for a service account token: confirm() must check its objects.
  std::optional<TokenClaims> claims = {};
};

/// The resources with the objects that tokens are bound to.
struct TokenObjects {
  resources::ServedResourcePtr accounts;
  resources::ServedResourcePtr pods;
  resources::ServedResourcePtr secrets;
  resources::ServedResourcePtr nodes;
};

struct AuthenticatorOptions {
  /// Tokens of the token file, if there is one.
  LOOKOUT_OPTION std::optional<TokenTable> tokens = {};
  /// Whether clients may use certificates.
  bool certificates = false;
  /// False: without `tokens` and certificates, an unknown token is treated as no token.
  bool refuses_unknown_tokens = false;
};

/// The user of a token, and the requested audiences that the token is for.
struct Reviewed {
  User user;
  std::vector<std::string> audiences;
};

/// Whether an object that a token depends on is missing, was replaced, or should have been deleted a
/// minute ago.
bool is_gone(const api::Object& object, std::string_view uid, api::Time now);

/// Authenticates by client certificate (the common name is the user, the organizations are the
/// groups) and by bearer token.
/// Safe to use from many threads.
class Authenticator {
 public:
  /// With neither tokens nor certificates, requests without a known token are authenticated as
  /// members of system:masters. `signer` must outlive it.
  Authenticator(AuthenticatorOptions options, const TokenSigner& signer, TokenObjects objects);

  bool demands_credentials() const { return options_.tokens || options_.certificates; }

  /// A new token that is valid until this server ends.
  std::string issue(User user);

  /// nullopt for invalid credentials (401). Without credentials: system:anonymous.
  std::optional<Identity> authenticate(const http::Request& request) const;
  /// Whether the service account of a token and the object that it is bound to still exist (and are
  /// not kept by a finalizer only).
  Awaitable<bool> confirm(TokenClaims claims) const;

  /// Returns the user of a token, for TokenReviews. The token must be for one of `audiences`, or
  /// for this server if there are none.
  Awaitable<std::optional<Reviewed>> review(std::string token,
                                            std::vector<std::string> audiences) const;

  const TokenSigner& signer() const { return signer_; }
  const TokenObjects& objects() const { return objects_; }

 private:
  std::optional<Identity> find(std::string_view token,
                               const std::vector<std::string>& audiences) const;

  const AuthenticatorOptions options_;
  const TokenSigner& signer_;
  const TokenObjects objects_;
  mutable std::shared_mutex mutex_;
  TokenTable issued_;  // guarded by mutex_
};

}  // namespace lookout::apiserver::auth
