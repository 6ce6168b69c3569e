// A simple HTTP client for tests, which can also send malformed requests.
#pragma once

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace lookout::apiserver {

struct HttpAnswer {
  int code = 0;
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
};

/// A keep-alive connection.
class HttpClient {
 public:
  using Headers = std::vector<std::pair<std::string, std::string>>;

  /// `from`: an address of this machine, 127.0.0.1 if it is empty.
  explicit HttpClient(std::uint16_t port, const std::string& from = {});

  /// The default Content-Type of a body is JSON.
  HttpAnswer request(const std::string& method, const std::string& target,
                     const std::string& body = {}, const Headers& headers = {});
  HttpAnswer get(const std::string& target, const Headers& headers = {}) {
    return request("GET", target, {}, headers);
  }

  /// Sends any bytes.
  void send(std::string_view bytes);
  /// The next response with its whole body. Throws boost::system::system_error at the end of the
  /// connection.
  HttpAnswer read_answer();
  /// Reads everything up to the end of the connection, with a time limit.
  std::string read_to_end();
  /// Waits for the head of a response and some more bytes; does not read the rest.
  std::string read_some();
  void close();
  boost::asio::ip::tcp::socket& socket() { return socket_; }

 private:
  boost::asio::io_context context_;
  boost::asio::ip::tcp::socket socket_;
  boost::beast::flat_buffer buffer_;
};

inline constexpr const char* kConfigMapsPath = "/api/v1/namespaces/default/configmaps";
inline constexpr const char* kPodsPath = "/api/v1/namespaces/default/pods";
inline constexpr const char* kDeploymentsPath = "/apis/apps/v1/namespaces/default/deployments";

inline const HttpClient::Headers kJsonBody{{"Content-Type", "application/json"}};

/// The JSON of a config map.
inline std::string config_map_text(const std::string& name, const std::string& value = "x") {
  return R"({"metadata":{"name":")" + name + R"("},"data":{"key":")" + value + R"("}})";
}

/// A request on its own connection.
HttpAnswer http(std::uint16_t port, const std::string& method, const std::string& target,
                const std::string& body = {}, const HttpClient::Headers& headers = {});

}  // namespace lookout::apiserver
