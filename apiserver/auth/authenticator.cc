#include "apiserver/auth/authenticator.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <mutex>
#include <sstream>
#include <utility>

#include "apiserver/resources/object_meta.h"
#include "lookout/api/error.h"
#include "lookout/base/ascii.h"

namespace lookout::apiserver::auth {
namespace {

User with_group(User user) {
  const bool has_one =
      std::any_of(user.groups.begin(), user.groups.end(), [](const std::string& group) {
        return group == kAuthenticated || group == kUnauthenticated;
      });
  if (!has_one && !user.is_anonymous()) user.groups.emplace_back(kAuthenticated);
  return user;
}

User user_of(const http::PeerCertificate& certificate) {
  User user{certificate.common_name, "", certificate.organizations};
  if (!certificate.fingerprint.empty())
    user.extra[kCredentialId] = {"X509SHA256=" + certificate.fingerprint};
  return with_group(std::move(user));
}

/// The fields of a line of CSV; nullopt if a quote is not closed.
std::optional<std::vector<std::string>> split_csv(std::string_view line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quoted) {
      if (c != '"') {
        fields.back() += c;
      } else if (i + 1 < line.size() && line[i + 1] == '"') {
        fields.back() += line[++i];
      } else {
        quoted = false;
      }
    } else if (c == '"') {
      quoted = true;
    } else if (c == ',') {
      fields.emplace_back();
    } else {
      fields.back() += c;
    }
  }
  if (quoted) return std::nullopt;
  return fields;
}

/// The token of a request; nullopt if it has no bearer credentials.
std::optional<std::string_view> bearer_token(const http::Request& request) {
  const std::string_view header = base::trim(request.header("authorization"));
  const std::size_t space = header.find(' ');
  if (space == std::string_view::npos ||
      !base::equal_ignoring_case(header.substr(0, space), "bearer"))
    return std::nullopt;
  const std::string_view token = base::trim(header.substr(space + 1));
  if (token.empty()) return std::nullopt;
  return token;
}

}  // namespace

bool is_gone(const api::Object& object, std::string_view uid, api::Time now) {
  constexpr std::chrono::minutes kLeeway{1};
  if (!object || object.uid() != uid) return true;
  const auto deleted = api::parse_time(object["metadata"]["deletionTimestamp"].as_string());
  return deleted && *deleted < now - kLeeway;
}

TokenTable::Digest TokenTable::digest(std::string_view token) {
  Digest out;
  SHA256(reinterpret_cast<const unsigned char*>(token.data()), token.size(), out.data());
  return out;
}

TokenTable TokenTable::from_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  if (!file || !(text << file.rdbuf()))
    throw Error(fmt::format("cannot read the token file {}", path));
  return parse(text.str(), path);
}

TokenTable TokenTable::parse(std::string_view text, const std::string& name) {
  TokenTable table;
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = text.find('\n');
    const std::string_view line = base::trim(text.substr(0, end));
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    if (line.empty()) continue;
    const auto fields = split_csv(line);
    // The message must not show the line, which contains secrets.
    if (!fields || fields->size() < 3) {
      throw Error(fmt::format(
          "token file {}, line {}: expected token,user,uid and, if any, \"group1,group2\"", name,
          number));
    }
    if ((*fields)[0].empty()) {
      throw Error(fmt::format("token file {}, line {}: the token is empty", name, number));
    }
    User user{(*fields)[1], (*fields)[2]};
    if (fields->size() > 3) {
      std::string_view groups = (*fields)[3];
      while (!groups.empty()) {
        const std::size_t comma = groups.find(',');
        if (const auto group = base::trim(groups.substr(0, comma)); !group.empty())
          user.groups.emplace_back(group);
        groups = comma == std::string_view::npos ? std::string_view{} : groups.substr(comma + 1);
      }
    }
    table.add((*fields)[0], std::move(user));
  }
  return table;
}

void TokenTable::add(std::string_view token, User user) {
  entries_.push_back({digest(token), std::move(user)});
}

std::optional<User> TokenTable::find(std::string_view token) const {
  const Digest wanted = digest(token);
  const User* found = nullptr;
  for (const Entry& entry : entries_) {
    if (CRYPTO_memcmp(entry.digest.data(), wanted.data(), wanted.size()) == 0) found = &entry.user;
  }
  if (found == nullptr) return std::nullopt;
  return *found;
}

Authenticator::Authenticator(AuthenticatorOptions options, const TokenSigner& signer,
                             TokenObjects objects)
    : options_(std::move(options)), signer_(signer), objects_(std::move(objects)) {}

std::string Authenticator::issue(User user) {
  std::string token = resources::new_uid() + resources::new_uid();
  const std::unique_lock lock(mutex_);
  issued_.add(token, std::move(user));
  return token;
}

std::optional<Identity> Authenticator::authenticate(const http::Request& request) const {
  const bool shows_certificate = options_.certificates && request.peer.has_value();
  if (shows_certificate && request.peer->valid && !request.peer->common_name.empty())
    return Identity{user_of(*request.peer)};
  const auto token = bearer_token(request);
  if (token) {
    auto found = find(*token, {signer_.issuer()});
    if (found || demands_credentials() || options_.refuses_unknown_tokens) return found;
  }
  if (!demands_credentials())
    return Identity{with_group({"system:unsecured", "", {"system:masters"}})};
  // A valid certificate without a common name is ignored.
  if (shows_certificate && !request.peer->valid) return std::nullopt;
  return Identity{{"system:anonymous", "", {kUnauthenticated}}};
}

std::optional<Identity> Authenticator::find(std::string_view token,
                                            const std::vector<std::string>& audiences) const {
  auto user = options_.tokens ? options_.tokens->find(token) : std::nullopt;
  if (!user) {
    const std::shared_lock lock(mutex_);
    user = issued_.find(token);
  }
  if (user) return Identity{with_group(std::move(*user))};
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  auto claims =
      signer_.verify(token, std::chrono::duration_cast<std::chrono::seconds>(now).count());
  if (!claims) return std::nullopt;
  const bool is_for_us = std::any_of(audiences.begin(), audiences.end(), [&](const auto& audience) {
    const auto& all = claims->audiences;
    return std::find(all.begin(), all.end(), audience) != all.end();
  });
  if (!is_for_us) return std::nullopt;
  return Identity{with_group(claims->user()), std::move(claims)};
}

Awaitable<bool> Authenticator::confirm(TokenClaims claims) const {
  const auto now =
      std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
  const api::Object account =
      co_await objects_.accounts->storage->get(claims.ns + "/" + claims.account);
  if (is_gone(account, claims.account_uid, now)) co_return false;
  const BoundObject& bound = claims.bound;
  if (bound.name.empty()) co_return true;
  const resources::ServedResourcePtr& resource = bound.kind == "Pod"      ? objects_.pods
                                                 : bound.kind == "Secret" ? objects_.secrets
                                                                          : objects_.nodes;
  const std::string key = resource->type.namespaced ? claims.ns + "/" + bound.name : bound.name;
  const api::Object object = co_await resource->storage->get(key);
  co_return !is_gone(object, bound.uid, now);
}

Awaitable<std::optional<Reviewed>> Authenticator::review(std::string token,
                                                         std::vector<std::string> audiences) const {
  if (audiences.empty()) audiences.push_back(signer_.issuer());
  auto found = find(token, audiences);
  if (!found) co_return std::nullopt;
  if (found->claims) {
    const bool exists = co_await confirm(*found->claims);
    if (!exists) co_return std::nullopt;
  }
  // A token without audiences is for this server.
  std::vector<std::string> own = {signer_.issuer()};
  if (found->claims) own = found->claims->audiences;
  std::erase_if(audiences, [&](const std::string& audience) {
    return std::find(own.begin(), own.end(), audience) == own.end();
  });
  if (audiences.empty()) co_return std::nullopt;
  co_return Reviewed{std::move(found->user), std::move(audiences)};
}

}  // namespace lookout::apiserver::auth
