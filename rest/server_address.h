// The address and the proxy of a server.
#pragma once

#include <string>
#include <string_view>

namespace lookout::rest::detail {

/// The parts of "https://host:8443/prefix".
struct HostPort {
  std::string scheme, host, port, path;  // an IPv6 host is in brackets
};

HostPort split_url(const std::string& url);

/// Whether it is a loopback address, for which client-go uses no proxy.
bool is_loopback(std::string host);

/// Whether a list such as $NO_PROXY contains the host (golang.org/x/net/http/httpproxy): "*", names
/// including their subdomains, ".name" or "*.name" for subdomains only, addresses, networks, each
/// with an optional port.
bool in_no_proxy(std::string_view list, const std::string& host, const std::string& port);

/// The proxy for a server from the environment: $HTTPS_PROXY or $https_proxy, for http URLs
/// $HTTP_PROXY or $http_proxy (golang.org/x/net/http/httpproxy). Empty if there is none, or if the
/// server is a loopback address or in $NO_PROXY or $no_proxy.
std::string environment_proxy(const std::string& url);

/// libcurl's options for a server whose certificate is for another name.
struct RenamedServer {
  std::string url;    // with the other name, up to the path prefix
  std::string route;  // for CURLOPT_CONNECT_TO
  std::string host;   // the Host header
};

RenamedServer rename_server(const std::string& url, std::string_view name);

}  // namespace lookout::rest::detail
