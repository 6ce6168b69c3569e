// A scripted HTTP/1.1 server.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "lookout/base/pinned.h"

namespace lookout::test {

/// A client's request.
struct HttpRequest {
  std::string method;
  std::string target;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;

  /// The values of a header, in order; the name in any case.
  std::vector<std::string> all(std::string_view name) const;
  /// The only value of a header, or "" if there is none; fails the test if there are several.
  std::string header(std::string_view name) const;
};

struct HttpResponse {
  int status = 200;
  std::string body = {};
  std::string content_type = "application/json";
  std::vector<std::string> headers = {};  // "Name: value"
};

/// TLS with this certificate; PEM.
struct HttpServerTls {
  std::string certificate = {};
  std::string key = {};
  /// If set, clients must have a certificate of this authority.
  std::string client_ca = {};
  /// Whether the handshake offers HTTP/1.1 (ALPN).
  bool alpn = true;
};

/// The server's side of one connection. The script of the connection runs on its own thread; every
/// function may block until the client acts, and returns when the server is destroyed.
class HttpConnection : public base::Pinned {
 public:
  ~HttpConnection();

  /// The number of the connection, from 0.
  int index() const { return index_; }
  /// The requested server name (SNI) and the common name of the client's certificate; TLS only.
  std::string server_name() const;
  std::string client_name() const;

  /// The next complete request; nullopt if the client closes first.
  std::optional<HttpRequest> read_request();
  /// The next request's head; the body is not read.
  std::optional<HttpRequest> read_request_head();
  /// Reads and discards until the client closes or resets the connection.
  void wait_for_close();

  /// False if the client has disconnected. `written()` counts the bytes.
  bool write(std::string_view bytes);
  std::size_t written() const { return written_; }
  /// True if the current write has been blocked by the client for a tenth of a second.
  bool stalled() const { return stalled_; }

  bool respond(const HttpResponse& response);
  /// Write a head with chunked encoding, and chunks.
  bool begin_chunks(int status = 200, std::string_view content_type = "application/json");
  bool chunk(std::string_view bytes);
  bool end_chunks();

  /// Ends the connection with a RST and discards unsent data.
  void reset();
  /// Closes the connection regularly.
  void close();

  /// Passes bytes between this connection and another address until either closes.
  void tunnel_to(int port);

 private:
  friend class HttpServer;
  struct Tls;

  HttpConnection(int fd, int index);
  bool handshake(Tls& server_tls);
  std::ptrdiff_t read_some(char* data, std::size_t size);
  bool fill();
  bool read_body(HttpRequest& request);
  /// Reads all data first: a close with unread data would send a RST, which overtakes the last data
  /// sent (an alert).
  void let_client_read();
  /// Makes blocked reads and writes return; from any thread.
  void abort();

  const int index_;
  std::mutex mutex_;  // guards fd_ against abort()
  int fd_;
  void* ssl_ = nullptr;
  std::string buffer_;
  std::atomic<std::size_t> written_{0};
  std::atomic<bool> stalled_{false};
};

/// Listens on 127.0.0.1 and runs the script for every connection, until it goes out of scope.
class HttpServer : public base::Pinned {
 public:
  using Script = std::function<void(HttpConnection&)>;
  using Handler = std::function<HttpResponse(const HttpRequest&)>;

  explicit HttpServer(Script script, std::optional<HttpServerTls> tls = {},
                      const std::string& address = "127.0.0.1");
  ~HttpServer();

  /// A script that responds to every request of a connection.
  static Script answering(Handler handler);

  int port() const { return port_; }
  std::string url() const;
  /// The number of accepted connections, and of open ones.
  int connections() const { return accepted_; }
  int open_connections() const { return open_; }
  /// The number of failed handshakes.
  int failed_handshakes() const { return failed_handshakes_; }

  /// Ends all connections with a RST, and continues listening.
  void reset_all();
  /// Refuses new connections. Existing ones stay open.
  void stop_listening();

 private:
  void accept_loop();

  const Script script_;
  std::unique_ptr<HttpConnection::Tls> tls_;
  int listen_fd_ = -1;
  int port_ = 0;
  std::string address_;
  std::atomic<int> accepted_{0};
  std::atomic<int> open_{0};
  std::atomic<int> failed_handshakes_{0};
  std::mutex mutex_;
  bool stopping_ = false;  // guarded by mutex_, like the following members
  std::vector<std::shared_ptr<HttpConnection>> connections_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

}  // namespace lookout::test
