// HttpTransport: HTTP for the client; by default over libcurl's multi interface, driven by
// Boost.Asio.
#pragma once

#include "lookout/base/detail/asio.h"  // before Asio

#include <boost/asio/any_io_executor.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/base/event_loop.h"
#include "lookout/rest/config.h"
#include "lookout/rest/error.h"

namespace lookout::rest::detail {

/// The settings of all requests to one server.
struct HttpServer {
  std::string url;  // scheme, host and port, without a trailing slash; a path prefix is possible
  std::string ca;   // PEM; empty: the system's certificates; a request may have another
  std::string server_name;  // expected in the server's certificate instead of the URL's host
  bool insecure = false;
  bool only_tls13 = false;  // otherwise also 1.2
  std::string proxy;        // empty: none
  bool compression = true;
  std::string user_agent;

  std::chrono::seconds connect_timeout{30};
  // A connection without any data is closed after at most idle + max(user timeout, interval).
  KeepAlive keepalive;
};

/// PEM texts; if they are set, the connection uses them.
struct ClientCertificate {
  std::string certificate;
  std::string key;
  bool operator==(const ClientCertificate&) const = default;
};

struct HttpRequest {
  std::string method = "GET";
  std::string target;                // path and query
  std::vector<std::string> headers;  // "Name: value"
  std::string body;
  ClientCertificate certificate;
  std::shared_ptr<const std::string> ca;  // null: that of the server
  std::chrono::milliseconds timeout{0};   // for the whole exchange; 0: none
  bool streaming = false;                 // pieces are delivered as they arrive: a watch, a log
  bool watch = false;                     // KeepAlive::stream_silence ends it
  bool may_be_compressed = true;
  bool list = false;               // a collection, whose response may be long
  std::function<bool()> may_send;  // called before head and body are sent; may be empty

  /// True if `may_send` does not allow the request, or throws.
  bool held_back() const {
    try {
      return may_send && !may_send();
    } catch (...) {
      return true;
    }
  }
};

struct HttpHead {
  int status = 0;
  std::string content_type;
  std::string location;
  std::optional<std::chrono::seconds> retry_after;
  std::vector<std::string> warnings;
  bool http2 = false;
};

/// One exchange, as seen by the coroutine that reads it. All functions except cancel() must be
/// called on the executor that was passed to start(). The destructor cancels an unfinished
/// exchange.
class HttpExchange {
 public:
  virtual ~HttpExchange() = default;

  /// Waits for the status line and the headers. Throws TransportError.
  virtual Awaitable<HttpHead> head() = 0;

  /// Waits for the next piece of the body, as large as possible; empty at the end. Throws
  /// TransportError, also if the body is truncated. The caller may return the last piece, so that
  /// its memory is reused.
  virtual Awaitable<std::string> read(std::string reuse = {}) = 0;

  /// From any thread.
  virtual void cancel() = 0;
};

/// All connections to one server. start() and shutdown() may be called from any thread.
class HttpTransport {
 public:
  virtual ~HttpTransport() = default;

  /// The network's transport, with libcurl. Reuses connections; with TLS, it uses HTTP/2 with many
  /// requests on one connection if the server supports it. Runs on a strand of the loop.
  static std::shared_ptr<HttpTransport> create(boost::asio::io_context& context, HttpServer server);

  /// Starts an exchange; `executor` is the strand of the coroutine that reads it.
  virtual std::shared_ptr<HttpExchange> start(HttpRequest request,
                                              boost::asio::any_io_executor executor) = 0;

  /// Cancels everything and closes all connections; later requests fail immediately. Waits until
  /// that is done, unless it is called on a thread of the loop.
  virtual void shutdown() = 0;

  virtual const HttpServer& server() const = 0;
};

/// Creates transports instead of libcurl's, so that a simulation can put its own network below a
/// client (Config::transport).
class TransportFactory {
 public:
  virtual ~TransportFactory() = default;
  virtual std::shared_ptr<HttpTransport> create(boost::asio::io_context& context,
                                                HttpServer server) = 0;
};

}  // namespace lookout::rest::detail
