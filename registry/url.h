// Parses URLs of any scheme.
#pragma once

#include <curl/curl.h>

#include <memory>
#include <string>
#include <string_view>

namespace lookout::registry::detail {

/// The address in URL form: in brackets if it has colons.
inline std::string bracketed(std::string_view address) {
  return address.find(':') == std::string_view::npos ? std::string(address)
                                                     : "[" + std::string(address) + "]";
}

/// A URL for messages: without user information and query, which may have secrets.
inline std::string without_secrets(std::string_view url) {
  const auto question = url.find('?');
  const auto at = url.rfind('@');
  if (at == std::string_view::npos) return std::string(url.substr(0, question));
  std::string out;
  if (const auto colon = url.find("://"); colon < at) out = url.substr(0, colon + 3);
  out += "...";
  // An '@' in the query may be part of a value.
  if (at < question) out += url.substr(at, question - at);
  return out;
}

/// Like Go, accepts spaces in the path and in the query.
class Url {
 public:
  explicit Url(const std::string& text)
      : url_(curl_url(), curl_url_cleanup),
        code_(curl_url_set(url_.get(), CURLUPART_URL, text.c_str(),
                           CURLU_NON_SUPPORT_SCHEME | CURLU_NO_AUTHORITY | CURLU_ALLOW_SPACE)) {}

  bool valid() const { return code_ == CURLUE_OK; }
  /// Why the URL is invalid.
  std::string defect() const { return curl_url_strerror(code_); }
  /// Empty if the URL does not have this part.
  std::string part(CURLUPart which) const {
    char* text = nullptr;
    if (curl_url_get(url_.get(), which, &text, 0) != CURLUE_OK) return {};
    const std::unique_ptr<char, decltype(&curl_free)> owner(text, curl_free);
    return text;
  }

 private:
  std::unique_ptr<CURLU, decltype(&curl_url_cleanup)> url_;
  CURLUcode code_;
};

}  // namespace lookout::registry::detail
