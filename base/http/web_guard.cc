#include "lookout/base/http/web_guard.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/ip/address.hpp>

#include "lookout/base/ascii.h"

namespace lookout::http {
namespace {

/// The authority of the URL; empty if there is no scheme.
std::string_view authority_of(std::string_view url) {
  const std::size_t scheme = url.find("://");
  if (scheme == std::string_view::npos) return {};
  url.remove_prefix(scheme + 3);
  return url.substr(0, url.find('/'));
}

/// The name or address in lower case, without port and brackets; empty if it is invalid.
std::string host_name(std::string_view host) {
  std::string_view rest;
  if (host.starts_with('[')) {
    const auto end = host.find(']');
    if (end == std::string_view::npos) return {};
    rest = host.substr(end + 1);
    host = host.substr(1, end - 1);
  } else {
    const auto colon = std::min(host.find(':'), host.size());
    rest = host.substr(colon);
    host = host.substr(0, colon);
  }
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  if (!rest.empty() && (rest[0] != ':' || !std::all_of(rest.begin() + 1, rest.end(), digit))) {
    return {};
  }
  std::string out = base::lower_case(host);
  if (out.ends_with('.')) out.pop_back();
  return out;
}

}  // namespace

bool host_is_allowed(std::string_view host, const std::vector<std::string>& allowed) {
  const std::string name = host_name(host);
  if (name.empty()) return false;
  if (name == "localhost" || name.ends_with(".localhost")) return true;
  boost::system::error_code error;
  boost::asio::ip::make_address(name, error);
  if (!error) return true;
  return std::ranges::any_of(allowed, [&](const auto& a) { return host_name(a) == name; });
}

bool announces_body(const Request& request) {
  const std::string_view length = request.header("content-length");
  return request.headers.contains("transfer-encoding") ||
         length.find_first_not_of('0') != std::string_view::npos;
}

std::string why_foreign(const Request& request, const std::vector<std::string>& allowed_hosts) {
  // An absolute target such as "http://host/path" overrides the header.
  std::string_view host = request.header("host");
  if (const auto of_target = authority_of(request.target);
      !request.target.starts_with('/') && !of_target.empty())
    host = of_target;
  // HTTP/1.0 does not require Host. Browsers always send it.
  const bool has_host = request.headers.contains("host") || !host.empty();
  if (has_host && !host_is_allowed(host, allowed_hosts)) {
    return fmt::format(
        "this server requires no credentials, so it does not accept the host name \"{}\": use an "
        "address or localhost, allow the name (--allow-host), or require credentials",
        host);
  }
  if (const auto origin = request.headers.find("origin"); origin != request.headers.end()) {
    if (base::lower_case(authority_of(origin->second)) != base::lower_case(host) || host.empty()) {
      return "this server requires no credentials, so it rejects requests from other web sites "
             "(Origin)";
    }
  }
  const std::string_view site = request.header("sec-fetch-site");
  if (!site.empty() && site != "same-origin" && site != "none") {
    return "this server requires no credentials, so it rejects requests from other web sites "
           "(Sec-Fetch-Site)";
  }
  return {};
}

}  // namespace lookout::http
