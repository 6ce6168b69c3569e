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

namespace lookout::test {

/// A client's request.
struct HttpRequest {
  std::string method;
  std::string target;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;

  /// The values of a header, in the order they came; the name in any case.
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
  /// Whether it says in the handshake that it speaks HTTP/1.1.
  bool alpn = true;
};

/// One connection, from the server's side. The script of the connection runs on a thread of its
/// own; every function may block until the client does its part, and gives up when the server is
/// destroyed.
class HttpConnection {
 public:
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  /// The how-manieth connection of the server this is; the first is 0.
  int index() const { return index_; }
  /// The name that the client asked for (SNI) and the common name of its certificate; TLS only.
  std::string server_name() const;
  std::string client_name() const;

  /// The next complete request; nullopt if the client closes first.
  std::optional<HttpRequest> read_request();
  /// The next request's head; the body stays where it is.
  std::optional<HttpRequest> read_request_head();
  /// Reads and discards until the client closes or resets the connection.
  void wait_for_close();

  /// False if the client has disconnected. `written()` counts the bytes.
  bool write(std::string_view bytes);
  std::size_t written() const { return written_; }
  /// Whether the last write has to wait because the client does not read, for a tenth of a second.
  bool stalled() const { return stalled_; }

  bool respond(const HttpResponse& response);
  /// A head that announces chunks, and chunks.
  bool begin_chunks(int status = 200, std::string_view content_type = "application/json");
  bool chunk(std::string_view bytes);
  bool end_chunks();

  /// The end of what this side sends (a half-close).
  void shutdown_write();
  /// Ends the connection with a RST, whatever has not been sent yet.
  void reset();
  /// Ends the connection in good order.
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
  /// To close with something unread would be a RST, which overtakes what was sent last (an alert).
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
class HttpServer {
 public:
  using Script = std::function<void(HttpConnection&)>;
  using Handler = std::function<HttpResponse(const HttpRequest&)>;

  explicit HttpServer(Script script, std::optional<HttpServerTls> tls = {},
                      const std::string& address = "127.0.0.1");
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  /// A script that responds to every request of a connection.
  static Script answering(Handler handler);

  int port() const { return port_; }
  std::string url() const;
  /// How many connections there have been, and how many are open.
  int connections() const { return accepted_; }
  int open_connections() const { return open_; }
  /// How many handshakes failed.
  int failed_handshakes() const { return failed_handshakes_; }

  /// Ends all connections with a RST, and continues listening.
  void reset_all();
  /// No new connections: they are refused. Those that exist stay.
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
  bool stopping_ = false;  // guarded by mutex_, as below
  std::vector<std::shared_ptr<HttpConnection>> connections_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

}  // namespace lookout::test
