#include "rest/server_address.h"

#include <fmt/format.h>

#include <boost/asio/ip/address.hpp>
#include <boost/asio/ip/network_v4.hpp>
#include <boost/asio/ip/network_v6.hpp>
#include <cstdlib>
#include <initializer_list>
#include <optional>

namespace lookout::rest::detail {
namespace {

using boost::asio::ip::address;

std::string lower(std::string_view text) {
  std::string out(text);
  for (char& c : out) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return out;
}

std::string without_brackets(std::string host) {
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  return host;
}

std::optional<address> address_of(const std::string& text) {
  boost::system::error_code error;
  const auto out = boost::asio::ip::make_address(text, error);
  return error ? std::nullopt : std::optional(out);
}

bool in_network(const std::string& text, const address& host) {
  boost::system::error_code error;
  if (host.is_v4()) {
    const auto network = boost::asio::ip::make_network_v4(text, error);
    return !error &&
           network.canonical() ==
               boost::asio::ip::network_v4(host.to_v4(), network.prefix_length()).canonical();
  }
  const auto network = boost::asio::ip::make_network_v6(text, error);
  return !error &&
         network.canonical() ==
             boost::asio::ip::network_v6(host.to_v6(), network.prefix_length()).canonical();
}

/// Removes and returns ":port" at the end, if any.
std::string take_port(std::string& entry) {
  const std::size_t colon = entry.rfind(':');
  // An IPv6 address without brackets has no port.
  const bool bracketed = entry.starts_with('[');
  if (colon == std::string::npos || (!bracketed && entry.find(':') != colon) ||
      entry.find(']', colon) != std::string::npos)
    return {};
  std::string port = entry.substr(colon + 1);
  entry.erase(colon);
  return port;
}

bool names(std::string entry, const std::string& host, const std::optional<address>& ip,
           const std::string& port) {
  if (entry == "*") return true;
  if (entry.find('/') != std::string::npos) return ip && in_network(entry, *ip);
  if (const std::string only = take_port(entry); !only.empty() && only != port) return false;
  if (const auto other = address_of(without_brackets(entry))) return ip && *ip == *other;
  if (entry.starts_with("*.")) entry.erase(0, 1);
  if (entry.starts_with('.')) return host.ends_with(entry);
  return host == entry || host.ends_with("." + entry);
}

/// The value of the first of these variables that is not empty.
std::string environment(std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (const char* value = std::getenv(name); value != nullptr && *value != '\0') return value;
  }
  return {};
}

}  // namespace

HostPort split_url(const std::string& url) {
  HostPort out;
  const std::size_t scheme_end = url.find("://");
  out.scheme = url.substr(0, scheme_end);
  std::string rest = url.substr(scheme_end == std::string::npos ? 0 : scheme_end + 3);
  const std::size_t slash = rest.find('/');
  if (slash != std::string::npos) out.path = rest.substr(slash);
  rest = rest.substr(0, slash);
  const std::size_t colon = rest.rfind(':');
  if (colon != std::string::npos && rest.find(']', colon) == std::string::npos) {
    out.port = rest.substr(colon + 1);
    rest = rest.substr(0, colon);
  } else {
    out.port = out.scheme == "http" ? "80" : "443";
  }
  out.host = rest;
  return out;
}

bool is_loopback(std::string host) {
  host = without_brackets(std::move(host));
  const auto ip = address_of(host);
  return host == "localhost" || (ip && ip->is_loopback());
}

bool in_no_proxy(std::string_view list, const std::string& host, const std::string& port) {
  const std::string name = lower(without_brackets(host));
  const auto ip = address_of(name);
  constexpr std::string_view kSeparators = ", \t";
  while (!list.empty()) {
    const std::size_t end = list.find_first_of(kSeparators);
    const std::string entry = lower(list.substr(0, end));
    if (!entry.empty() && names(entry, name, ip, port)) return true;
    list.remove_prefix(end == std::string_view::npos ? list.size() : end + 1);
  }
  return false;
}

std::string environment_proxy(const std::string& url) {
  const HostPort server = split_url(url);
  if (is_loopback(server.host) ||
      in_no_proxy(environment({"NO_PROXY", "no_proxy"}), server.host, server.port))
    return {};
  std::string proxy = server.scheme == "https" ? environment({"HTTPS_PROXY", "https_proxy"})
                                               : environment({"HTTP_PROXY", "http_proxy"});
  if (!proxy.empty() && proxy.find("://") == std::string::npos) proxy.insert(0, "http://");
  return proxy;
}

RenamedServer rename_server(const std::string& url, std::string_view name) {
  const HostPort parts = split_url(url);
  std::string host(name);
  if (const auto ip = address_of(without_brackets(host)); ip && ip->is_v6())
    host = fmt::format("[{}]", without_brackets(host));
  return {fmt::format("{}://{}:{}{}", parts.scheme, host, parts.port, parts.path),
          fmt::format("{}:{}:{}:{}", host, parts.port, parts.host, parts.port),
          fmt::format("{}:{}", parts.host, parts.port)};
}

}  // namespace lookout::rest::detail
