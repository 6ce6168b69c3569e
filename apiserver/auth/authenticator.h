// Finding out who makes a request.
#pragma once

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "apiserver/auth/user.h"
#include "lookout/base/http/message.h"

namespace lookout::apiserver::auth {

/// Tokens and who they stand for. Immutable.
class TokenTable {
 public:
  /// Reads kube-apiserver's token file: lines of `token,user,uid,"group1,group2"`, the groups being
  /// optional. Throws lookout::Error with the file and the line.
  static TokenTable from_file(const std::string& path);
  /// The same from text; `name` is for messages.
  static TokenTable parse(std::string_view text, const std::string& name);

  void add(std::string_view token, User user);
  /// Nothing if the token is unknown. Takes as long for a wrong token as for a right one.
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

/// By client certificate (common name and organizations are user and groups) and by bearer token.
class Authenticator {
 public:
  /// `tokens`, if given, and client certificates with `certificates` are ways to identify oneself.
  /// With neither, everybody is a privileged user.
  Authenticator(std::optional<TokenTable> tokens, bool certificates);

  bool demands_credentials() const { return tokens_.has_value() || certificates_; }

  /// Nothing for credentials that are no good (401). Without credentials: system:anonymous.
  std::optional<User> authenticate(const http::Request& request) const;

  /// The user of a token, for token reviews.
  std::optional<User> review(std::string_view token) const;

 private:
  const std::optional<TokenTable> tokens_;
  const bool certificates_;
};

}  // namespace lookout::apiserver::auth
