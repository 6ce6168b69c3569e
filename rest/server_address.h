// Where a request goes, and by which way.
#pragma once

#include <string>
#include <string_view>

namespace lookout::rest::detail {

/// The parts of "https://host:8443/prefix".
struct HostPort {
  std::string scheme, host, port, path;  // an IPv6 host is in brackets
};

HostPort split_url(const std::string& url);

/// Whether the address is one of this machine's own; client-go's proxies are for no such server.
bool is_loopback(std::string host);

/// Whether a list as in $NO_PROXY names the host (golang.org/x/net/http/httpproxy): "*", names with
/// everything below them, ".name" or "*.name" for what is below it alone, addresses, networks, each
/// with a port or without.
bool in_no_proxy(std::string_view list, const std::string& host, const std::string& port);

/// The proxy that the environment names for a server: $HTTPS_PROXY or $https_proxy, for http URLs
/// $HTTP_PROXY or $http_proxy (golang.org/x/net/http/httpproxy). Empty if there is none, or it is not
/// for this server, which is this machine, or in $NO_PROXY or $no_proxy.
std::string environment_proxy(const std::string& url);

/// How libcurl is told to reach a server whose certificate is for another name.
struct RenamedServer {
  std::string url;    // with the other name, without what follows the prefix
  std::string route;  // for CURLOPT_CONNECT_TO
  std::string host;   // the Host header
};

RenamedServer rename_server(const std::string& url, std::string_view name);

}  // namespace lookout::rest::detail
