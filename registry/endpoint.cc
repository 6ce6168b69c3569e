#include "lookout/registry/endpoint.h"

#include <algorithm>
#include <array>
#include <ostream>

#include "lookout/base/ascii.h"
#include "registry/url.h"

namespace lookout::registry {
namespace {

constexpr std::size_t kMaxSize = 8192;

using base::is_digit;
using base::is_letter;

bool is_scheme(std::string_view text) {
  return !text.empty() && is_letter(text.front()) && std::ranges::all_of(text, [](char c) {
    return is_letter(c) || is_digit(c) || c == '+' || c == '-' || c == '.' || c == '_';
  });
}

bool is_ipv6(std::string_view text) {
  // With a zone: fe80::1%eth0.
  const std::string_view address = text.substr(0, text.find('%'));
  const auto hex = [](char c) {
    return is_digit(c) || (base::lower_case(c) >= 'a' && base::lower_case(c) <= 'f') || c == ':' ||
           c == '.';
  };
  return std::ranges::count(address, ':') >= 2 && std::ranges::all_of(address, hex);
}

bool is_host(std::string_view text) {
  return !text.empty() && std::ranges::none_of(text, [](char c) {
    return std::string_view("[]@:\\<>\"^`{|}%").find(c) != std::string_view::npos;
  });
}

int hex_value(char c) {
  if (is_digit(c)) return c - '0';
  const char small = base::lower_case(c);
  return small >= 'a' && small <= 'f' ? small - 'a' + 10 : -1;
}

/// Unescapes a query.
std::string decoded(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '+') {
      out += ' ';
    } else if (text[i] == '%' && i + 2 < text.size() && hex_value(text[i + 1]) >= 0 &&
               hex_value(text[i + 2]) >= 0) {
      out += static_cast<char>(hex_value(text[i + 1]) * 16 + hex_value(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

}  // namespace

Endpoint::Endpoint(std::string text) : text_(std::move(text)) { defect_ = parse(); }

Endpoint::Endpoint(std::string_view scheme, std::string_view host, std::uint16_t port)
    : Endpoint([&] {
        std::string text(scheme);
        text += "://";
        text += host.starts_with('[') ? std::string(host) : detail::bracketed(host);
        text += ':';
        text += std::to_string(port);
        return text;
      }()) {}

const char* Endpoint::parse() {
  const std::string_view text = text_;
  if (text.empty()) return "it is empty";
  if (text.size() > kMaxSize) return "it is longer than 8192 characters";
  const bool printable = std::ranges::all_of(
      text, [](char c) { return static_cast<unsigned char>(c) > 0x20 && c != 0x7f; });
  if (!printable) return "it has spaces or control characters";

  const std::size_t colon = text.find("://");
  if (colon == std::string_view::npos) return "it has no scheme";
  if (!is_scheme(text.substr(0, colon))) return "its scheme is invalid";

  const std::size_t begin = colon + 3;
  const std::size_t end = std::min(text.find_first_of("/?#", begin), text.size());
  const std::string_view authority = text.substr(begin, end - begin);
  std::string_view host = authority;
  std::string_view port;
  std::size_t host_begin = begin;
  if (authority.starts_with('[')) {
    const std::size_t closed = authority.find(']');
    if (closed == std::string_view::npos) return "the bracket of its address is not closed";
    host = authority.substr(1, closed - 1);
    ++host_begin;
    port = authority.substr(closed + 1);
    if (!is_ipv6(host)) return "the text in brackets is not an IPv6 address";
  } else {
    if (authority.find('@') != std::string_view::npos) return "it names a user";
    const std::size_t at = authority.find(':');
    host = authority.substr(0, at);
    port = at == std::string_view::npos ? std::string_view() : authority.substr(at);
    if (!is_host(host)) return host.empty() ? "it has no host" : "its host is invalid";
  }
  std::uint32_t number = 0;
  if (!port.empty()) {
    if (port.front() != ':') return "its host is invalid";
    port.remove_prefix(1);
    if (port.empty() || port.size() > 5 || !std::ranges::all_of(port, is_digit)) {
      return "its port is not a number from 1 to 65535";
    }
    for (const char digit : port) number = number * 10 + static_cast<std::uint32_t>(digit - '0');
    if (number == 0 || number > 65535) return "its port is not a number from 1 to 65535";
  }

  const std::size_t fragment = std::min(text.find('#', end), text.size());
  const std::size_t question = text.find('?', end);
  scheme_size_ = static_cast<std::uint32_t>(colon);
  authority_size_ = static_cast<std::uint32_t>(authority.size());
  host_ = {static_cast<std::uint32_t>(host_begin), static_cast<std::uint32_t>(host.size())};
  if (question < fragment)
    query_ = {static_cast<std::uint32_t>(question + 1),
              static_cast<std::uint32_t>(fragment - question - 1)};
  port_ = static_cast<std::uint16_t>(number);
  return nullptr;
}

std::optional<std::string> Endpoint::parameter(std::string_view name) const {
  std::string_view rest = query();
  while (!rest.empty()) {
    const std::string_view pair = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(pair.size() + 1, rest.size()));
    const std::size_t equals = std::min(pair.find('='), pair.size());
    if (decoded(pair.substr(0, equals)) != name) continue;
    return decoded(pair.substr(std::min(equals + 1, pair.size())));
  }
  return std::nullopt;
}

bool Endpoint::has_scheme(std::string_view scheme) const {
  const std::string_view own = this->scheme();
  return own == scheme || base::equal_ignoring_case(own, scheme);
}

bool Endpoint::secure() const {
  static constexpr std::array<std::string_view, 4> kSecure = {"https", "grpcs", "wss", "tls"};
  if (std::ranges::any_of(kSecure, [&](std::string_view s) { return has_scheme(s); })) return true;
  return query_.size > 0 && parameter("isSecure") == "true";
}

std::string Endpoint::url(std::string_view path) const {
  if (!valid()) return text_;
  std::string out(text_, 0, authority_begin() + authority_size_);
  if (!path.empty() && path.front() != '/' && path.front() != '?') out += '/';
  out += path;
  return out;
}

std::ostream& operator<<(std::ostream& out, const Endpoint& endpoint) {
  return out << '"' << endpoint.text() << '"';
}

}  // namespace lookout::registry
