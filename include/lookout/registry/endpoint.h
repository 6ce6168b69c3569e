// Endpoint: the address of an instance.
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

/// "scheme://host:port?query", parsed once, in the constructor. A plain value.
///
///     const registry::Endpoint e = "http://10.1.2.3:8000?isSecure=false";
///     e.scheme();        // "http"
///     e.url("/hello");   // "http://10.1.2.3:8000/hello"
///
/// The constructors never throw: text that is not an endpoint is kept unchanged, but valid() is
/// false and defect() returns the reason. Registration rejects it, and balancers do not pick it.
///
/// Valid endpoints have a scheme of letters, digits, '+', '-', '.' and '_', a host (a name, an IPv4
/// address, or an IPv6 address in brackets) and, each optional, a port from 1 to 65535, a path, a
/// query and a fragment. User information ("user@") is rejected, because everybody can read
/// endpoints.
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
  /// The reason why the text is not an endpoint; empty if it is one.
  std::string_view defect() const { return defect_ == nullptr ? "" : defect_; }

  /// The original text. The parts below are empty, or 0, if it is not valid.
  const std::string& text() const& LOOKOUT_LIFETIME_BOUND { return text_; }
  std::string text() && { return std::move(text_); }
  /// For code that has endpoints as strings.
  operator const std::string&() const& LOOKOUT_LIFETIME_BOUND {  // NOLINT
    return text_;
  }

  std::string_view scheme() const LOOKOUT_LIFETIME_BOUND { return part({0, scheme_size_}); }
  /// Without the brackets of an IPv6 address.
  std::string_view host() const LOOKOUT_LIFETIME_BOUND { return part(host_); }
  /// 0 if there is none.
  std::uint16_t port() const { return port_; }
  /// "host:port", with an IPv6 address in brackets: for connecting, and for the Host header.
  std::string_view authority() const LOOKOUT_LIFETIME_BOUND {
    return part({authority_begin(), authority_size_});
  }
  /// The text between '?' and '#', not decoded.
  std::string_view query() const LOOKOUT_LIFETIME_BOUND { return part(query_); }
  /// The decoded value of a query parameter; empty if there is no such parameter.
  std::optional<std::string> parameter(std::string_view name) const;

  /// False: the port belongs to another container, and the instance does not announce it. Discovery
  /// sets this for ports that are missing from kratos' annotation, if it names any. Balancers do
  /// not pick such endpoints.
  bool announced() const { return announced_; }
  void set_announced(bool announced) { announced_ = announced; }

  /// Compares schemes case-insensitively (RFC 3986, 3.1).
  bool has_scheme(std::string_view scheme) const;
  /// True for "https", "grpcs", "wss" and "tls", or with kratos' isSecure=true.
  bool secure() const;

  /// "scheme://host:port" followed by the path, which may have its own query and gets a leading
  /// slash if it has none. The endpoint's own path and query are not included.
  std::string url(std::string_view path = {}) const;

  /// Compares the texts.
  friend bool operator==(const Endpoint& a, const Endpoint& b) { return a.text_ == b.text_; }
  friend auto operator<=>(const Endpoint& a, const Endpoint& b) { return a.text_ <=> b.text_; }
  /// Compares with text that is not an Endpoint.
  template <class Text>
    requires(std::is_convertible_v<const Text&, std::string_view> &&
             !std::is_same_v<Text, Endpoint>)
  friend bool operator==(const Endpoint& a, const Text& text) {
    return a.text_ == std::string_view(text);
  }
  friend std::ostream& operator<<(std::ostream& out, const Endpoint& endpoint);

 private:
  /// Where a part is in the text.
  struct Part {
    std::uint32_t begin = 0;
    std::uint32_t size = 0;
  };

  const char* parse();
  std::uint32_t authority_begin() const { return scheme_size_ == 0 ? 0 : scheme_size_ + 3; }
  std::string_view part(Part part) const {
    return valid() ? std::string_view(text_).substr(part.begin, part.size) : std::string_view();
  }

  std::string text_;
  std::uint32_t scheme_size_ = 0;
  std::uint32_t authority_size_ = 0;
  Part host_;
  Part query_;
  std::uint16_t port_ = 0;
  bool announced_ = true;
  const char* defect_ = nullptr;
};

}  // namespace lookout::registry
