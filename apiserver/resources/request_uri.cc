#include "apiserver/resources/request_uri.h"

#include <algorithm>
#include <cstddef>

#include "apiserver/resources/ip_address.h"
#include "lookout/base/ascii.h"

namespace lookout::apiserver::resources {
namespace {

using base::is_digit;
using base::is_hex_digit;
using base::is_letter;
bool is_ascii(char c) { return static_cast<unsigned char>(c) < 0x80; }
bool is_control(char c) { return static_cast<unsigned char>(c) < 0x20 || c == 0x7F; }
bool is_any_of(char c, std::string_view characters) {
  return characters.find(c) != std::string_view::npos;
}

/// Whether two hexadecimal digits follow each percent sign.
bool is_escaped(std::string_view text) {
  for (std::size_t at = text.find('%'); at != std::string_view::npos; at = text.find('%', at + 1)) {
    if (at + 2 >= text.size() || !is_hex_digit(text[at + 1]) || !is_hex_digit(text[at + 2]))
      return false;
  }
  return true;
}

bool is_optional_port(std::string_view text) {
  return text.empty() ||
         (text.front() == ':' && std::all_of(text.begin() + 1, text.end(), is_digit));
}

/// An IPv6 address, optionally with a zone after "%25".
bool is_literal(std::string_view text) {
  constexpr std::string_view kZone = "%25";
  const std::size_t zone = text.find(kZone);
  if (zone != std::string_view::npos &&
      (zone + kZone.size() == text.size() || !is_escaped(text.substr(zone))))
    return false;
  const std::string_view address = text.substr(0, zone);
  const auto parsed =
      address.find('\0') == std::string_view::npos ? IpAddress::parse(address) : std::nullopt;
  return parsed && parsed->family == 6;
}

/// The characters that RFC 3986 allows in hosts, and a few that Go accepts, too. Only non-ASCII
/// characters may be escaped.
bool is_host_name(std::string_view text) {
  if (!is_escaped(text)) return false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '%' && text[i + 1] < '8' && text.substr(i, 3) != "%25") return false;
    const bool taken =
        !is_ascii(c) || is_letter(c) || is_digit(c) || is_any_of(c, "-_.~!$&'()*+,;=:[]<>\"%");
    if (!taken) return false;
  }
  return true;
}

bool is_host(std::string_view text) {
  if (text.starts_with('[')) {
    const std::size_t end = text.rfind(']');
    return end != std::string_view::npos && is_optional_port(text.substr(end + 1)) &&
           is_literal(text.substr(1, end - 1));
  }
  const std::size_t colon = text.find(':');
  const std::string_view port =
      colon == std::string_view::npos ? std::string_view() : text.substr(colon);
  return is_optional_port(port) && is_host_name(text.substr(0, colon));
}

bool is_authority(std::string_view text) {
  const std::size_t at = text.rfind('@');
  if (at == std::string_view::npos) return is_host(text);
  const std::string_view user = text.substr(0, at);
  const auto in_user = [](char c) {
    return is_letter(c) || is_digit(c) || is_any_of(c, "-._~:!$&'()*+,;=%@");
  };
  return is_host(text.substr(at + 1)) && std::all_of(user.begin(), user.end(), in_user) &&
         is_escaped(user);
}

/// The length of "https:"; 0 if there is no scheme. Text that begins with a colon has one, which is
/// invalid: npos.
std::size_t scheme_size(std::string_view text) {
  if (text.starts_with(':')) return std::string_view::npos;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ':') return i + 1;
    const bool taken = is_letter(c) || (i > 0 && (is_digit(c) || is_any_of(c, "+-.")));
    if (!taken) return 0;
  }
  return 0;
}

}  // namespace

bool is_request_uri(std::string_view text) {
  if (text == "*") return true;
  if (text.empty() || std::any_of(text.begin(), text.end(), is_control)) return false;
  const std::size_t scheme = scheme_size(text);
  if (scheme == std::string_view::npos) return false;
  std::string_view rest = text.substr(scheme);
  rest = rest.substr(0, rest.find('?'));
  if (!rest.starts_with('/')) return scheme > 0;  // "mailto:someone"
  if (scheme > 0 && rest.starts_with("//")) {
    const std::size_t path = std::min(rest.find('/', 2), rest.size());
    if (!is_authority(rest.substr(2, path - 2))) return false;
    rest = rest.substr(path);
  }
  return is_escaped(rest);
}

}  // namespace lookout::apiserver::resources
