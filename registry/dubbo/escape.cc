#include "registry/dubbo/escape.h"

#include <curl/curl.h>

#include <algorithm>
#include <memory>
#include <new>

#include "lookout/base/structural_scanner.h"

namespace lookout::registry::dubbo {
namespace {

using CurlText = std::unique_ptr<char, decltype(&curl_free)>;

}  // namespace

std::string_view cut(std::string_view& text, char separator) {
  const auto end = std::min(text.find(separator), text.size());
  const std::string_view part = text.substr(0, end);
  text.remove_prefix(std::min(end + 1, text.size()));
  return part;
}

std::string query_escape(std::string_view text) {
  // libcurl escapes the same characters. For a length of 0, it would call strlen().
  if (text.empty()) return {};
  const CurlText escaped(curl_easy_escape(nullptr, text.data(), static_cast<int>(text.size())),
                         curl_free);
  if (!escaped) throw std::bad_alloc();
  std::string out(escaped.get());
  for (std::size_t at = 0; (at = out.find("%20", at)) != std::string::npos; ++at)
    out.replace(at, 3, "+");
  return out;
}

std::string query_unescape(std::string_view text) {
  std::string plain(text);
  std::ranges::replace(plain, '+', ' ');
  int size = 0;
  const CurlText decoded(
      curl_easy_unescape(nullptr, plain.data(), static_cast<int>(plain.size()), &size), curl_free);
  return decoded ? std::string(decoded.get(), static_cast<std::size_t>(size)) : plain;
}

bool is_text(std::string_view unescaped) {
  return unescaped.find('\0') == std::string_view::npos &&
         find_invalid_utf8(unescaped) == std::string_view::npos;
}

}  // namespace lookout::registry::dubbo
