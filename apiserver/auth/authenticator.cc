#include "apiserver/auth/authenticator.h"

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/sha.h>

#include <fstream>
#include <sstream>
#include <utility>

#include "lookout/api/error.h"
#include "lookout/base/ascii.h"

namespace lookout::apiserver::auth {
namespace {

constexpr const char* kAuthenticated = "system:authenticated";

User with_group(User user) {
  user.groups.emplace_back(kAuthenticated);
  return user;
}

/// The fields of a line of CSV; nothing if a quote is not closed.
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

/// The token of a request; nothing if it has no bearer credentials.
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
    // The message must not show the line: there are secrets in it.
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

Authenticator::Authenticator(std::optional<TokenTable> tokens, bool certificates)
    : tokens_(std::move(tokens)), certificates_(certificates) {}

std::optional<User> Authenticator::authenticate(const http::Request& request) const {
  if (!demands_credentials()) return with_group({"system:unsecured", "", {"system:masters"}});
  const bool shows_certificate = certificates_ && request.peer.has_value();
  if (shows_certificate && request.peer->valid && !request.peer->common_name.empty())
    return with_group({request.peer->common_name, "", request.peer->organizations});
  if (const auto token = bearer_token(request)) {
    auto user = review(*token);
    if (!user) return std::nullopt;
    return user;
  }
  if (shows_certificate) return std::nullopt;
  return User{"system:anonymous", "", {"system:unauthenticated"}};
}

std::optional<User> Authenticator::review(std::string_view token) const {
  if (!tokens_) return std::nullopt;
  auto user = tokens_->find(token);
  if (!user) return std::nullopt;
  return with_group(std::move(*user));
}

}  // namespace lookout::apiserver::auth
