// Where an instance can be called.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "lookout/base/attributes.h"

namespace lookout::registry {

/// "scheme://host:port?query", taken apart once, when it is made. A plain value.
///
///     const registry::Endpoint e = "http://10.1.2.3:8000?isSecure=false";
///     e.scheme();        // "http"
///     e.url("/hello");   // "http://10.1.2.3:8000/hello"
///
/// Making one never throws: text that is no endpoint is kept as it came, is not valid(), and
/// defect() says why. Registration refuses it, and balancers do not pick it.
///
/// Accepted are a scheme of letters, digits, '+', '-', '.' and '_', a host name, an IPv4 address or
/// an IPv6 address in brackets, and, each optional, a port from 1 to 65535, a path, a query and a
/// fragment. User information ("user@") is refused: endpoints stand where everybody reads them.
class Endpoint {
 public:
  Endpoint() : Endpoint(std::string()) {}
  Endpoint(std::string text);      // NOLINT(google-explicit-constructor)
  Endpoint(std::string_view text)  // NOLINT(google-explicit-constructor)
      : Endpoint(std::string(text)) {}
  Endpoint(const char* text)  // NOLINT(google-explicit-constructor)
      : Endpoint(std::string(text)) {}
  /// From its parts. A host with colons gets brackets.
  Endpoint(std::string_view scheme, std::string_view host, std::uint16_t port);

  bool valid() const { return defect_ == nullptr; }
  /// Why it is no endpoint; empty if it is one.
  std::string_view defect() const { return defect_ == nullptr ? "" : defect_; }

  /// As it was written. What follows is empty, or 0, if it is not valid.
  const std::string& text() const& LOOKOUT_LIFETIME_BOUND { return text_; }
  std::string text() && { return std::move(text_); }
  /// For code that has endpoints as strings.
  operator const std::string&() const& LOOKOUT_LIFETIME_BOUND {  // NOLINT
    return text_;
  }

  std::string_view scheme() const LOOKOUT_LIFETIME_BOUND { return part(0, scheme_size_); }
  /// Without the brackets of an IPv6 address.
  std::string_view host() const LOOKOUT_LIFETIME_BOUND { return part(host_begin_, host_size_); }
  /// 0 if none is given.
  std::uint16_t port() const { return port_; }
  /// "host:port", an IPv6 address in brackets: what one connects to, and the Host header.
  std::string_view authority() const LOOKOUT_LIFETIME_BOUND {
    return part(authority_begin(), authority_size_);
  }
  /// Between '?' and '#', as it is written.
  std::string_view query() const LOOKOUT_LIFETIME_BOUND { return part(query_begin_, query_size_); }
  /// The value of a parameter of the query, decoded; nothing if there is no such parameter.
  std::optional<std::string> parameter(std::string_view name) const;

  /// False: the port of another container, which the instance does not announce. Discovery says so
  /// of ports that are not in kratos' annotation, if it names any; balancers do not pick them.
  bool announced() const { return announced_; }
  void set_announced(bool announced) { announced_ = announced; }

  /// Schemes are compared without regard to case (RFC 3986, 3.1).
  bool has_scheme(std::string_view scheme) const;
  /// "https", "grpcs", "wss" and "tls", or kratos' isSecure=true.
  bool secure() const;

  /// "scheme://host:port" and the path, which may have a query of its own and gets its first slash
  /// if it has none. The endpoint's own path and query are not part of it.
  std::string url(std::string_view path = {}) const;

  /// The same text.
  friend bool operator==(const Endpoint& a, const Endpoint& b) { return a.text_ == b.text_; }
  friend auto operator<=>(const Endpoint& a, const Endpoint& b) { return a.text_ <=> b.text_; }
  /// Compared with what is text and no endpoint.
  template <class Text>
    requires(std::is_convertible_v<const Text&, std::string_view> &&
             !std::is_same_v<Text, Endpoint>)
  friend bool operator==(const Endpoint& a, const Text& text) {
    return a.text_ == std::string_view(text);
  }
  friend std::ostream& operator<<(std::ostream& out, const Endpoint& endpoint);

 private:
  const char* parse();
  std::uint32_t authority_begin() const { return scheme_size_ == 0 ? 0 : scheme_size_ + 3; }
  std::string_view part(std::uint32_t begin, std::uint32_t size) const {
    return valid() ? std::string_view(text_).substr(begin, size) : std::string_view();
  }

  std::string text_;
  std::uint32_t scheme_size_ = 0;
  std::uint32_t authority_size_ = 0;
  std::uint32_t host_begin_ = 0;
  std::uint32_t host_size_ = 0;
  std::uint32_t query_begin_ = 0;
  std::uint32_t query_size_ = 0;
  std::uint16_t port_ = 0;
  bool announced_ = true;
  const char* defect_ = nullptr;
};

}  // namespace lookout::registry
