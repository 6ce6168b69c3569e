#include "lookout/base/http/message.h"

#include <algorithm>

#include "lookout/base/ascii.h"

namespace lookout::http {
namespace {

bool parse_query(std::string_view text, Query& query) {
  while (!text.empty()) {
    const std::size_t end = text.find('&');
    const std::string_view pair = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view{} : text.substr(end + 1);
    if (pair.empty()) continue;
    const std::size_t equals = pair.find('=');
    auto name = percent_decode(pair.substr(0, equals), true);
    auto value = percent_decode(
        equals == std::string_view::npos ? std::string_view{} : pair.substr(equals + 1), true);
    if (!name || !value) return false;
    query.emplace_back(std::move(*name), std::move(*value));
  }
  return true;
}

}  // namespace

std::string_view Request::header(std::string_view name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string_view{} : found->second;
}

std::vector<std::string> Request::header_values(std::string_view name) const {
  if (const auto several = repeated.find(name); several != repeated.end()) return several->second;
  const auto one = headers.find(name);
  if (one == headers.end()) return {};
  return {one->second};
}

std::optional<std::string_view> Request::parameter(std::string_view name) const {
  const auto found = std::find_if(query.begin(), query.end(),
                                  [&](const auto& pair) { return pair.first == name; });
  if (found == query.end()) return std::nullopt;
  return found->second;
}

std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '%') {
      if (i + 2 >= text.size()) return std::nullopt;
      const int high = base::hex_value(text[i + 1]);
      const int low = base::hex_value(text[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      out += static_cast<char>(high * 16 + low);
      i += 2;
    } else {
      out += text[i] == '+' && plus_is_space ? ' ' : text[i];
    }
  }
  return out;
}

bool parse_target(std::string target, Request& request) {
  request.target = std::move(target);
  std::string_view rest = request.target;
  // The server as a whole: "OPTIONS *".
  if (rest == "*") {
    request.path = rest;
    request.segments = {request.path};
    return true;
  }
  // The absolute form of the target, for proxies: "http://host/path".
  if (!rest.starts_with('/')) {
    const std::size_t scheme = rest.find("://");
    if (scheme == std::string_view::npos) return false;
    const std::size_t slash = rest.find('/', scheme + 3);
    rest = slash == std::string_view::npos ? "/" : rest.substr(slash);
  }
  const std::size_t question = rest.find('?');
  const std::string_view path = rest.substr(0, question);
  auto decoded = percent_decode(path, false);
  if (!decoded) return false;
  request.path = std::move(*decoded);
  for (std::size_t begin = 1; begin < path.size();) {
    const std::size_t end = std::min(path.find('/', begin), path.size());
    if (end > begin)
      request.segments.push_back(*percent_decode(path.substr(begin, end - begin), false));
    begin = end + 1;
  }
  return question == std::string_view::npos ||
         parse_query(rest.substr(question + 1), request.query);
}

}  // namespace lookout::http
