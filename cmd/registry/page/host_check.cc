#include "cmd/registry/page/host_check.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>

namespace lookout::cmd::registry_cmd {
namespace {

/// The name or address, in lower case, without the port and without brackets; empty if it is none.
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
  std::string out(host);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
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

}  // namespace lookout::cmd::registry_cmd
