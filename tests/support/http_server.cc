#include "tests/support/http_server.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <openssl/err.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <stdexcept>

#include "lookout/base/ascii.h"

namespace lookout::test {
namespace {

template <class T>
std::shared_ptr<T> from_pem(const std::string& pem, T* (*read)(BIO*, T**, pem_password_cb*, void*),
                            void (*free)(T*)) {
  BIO* bio = BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size()));
  T* out = read(bio, nullptr, nullptr, nullptr);
  BIO_free(bio);
  if (out == nullptr) throw std::runtime_error("not in PEM");
  return {out, free};
}

// OpenSSL writes to sockets that may be closed by now.
void block_sigpipe() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGPIPE);
  pthread_sigmask(SIG_BLOCK, &set, nullptr);
}

int choose_http1(SSL*, const unsigned char** out, unsigned char* out_size, const unsigned char* in,
                 unsigned in_size, void*) {
  static constexpr unsigned char kHttp1[] = "\x08http/1.1";
  auto* chosen = const_cast<unsigned char*>(*out);
  const int found =
      SSL_select_next_proto(&chosen, out_size, kHttp1, sizeof kHttp1 - 1, in, in_size);
  *out = chosen;
  return found == OPENSSL_NPN_NEGOTIATED ? SSL_TLSEXT_ERR_OK : SSL_TLSEXT_ERR_NOACK;
}

SSL* ssl_of(void* ssl) { return static_cast<SSL*>(ssl); }

}  // namespace

std::vector<std::string> HttpRequest::all(std::string_view name) const {
  std::vector<std::string> out;
  for (const auto& [key, value] : headers)
    if (base::equal_ignoring_case(key, name)) out.push_back(value);
  return out;
}

std::string HttpRequest::header(std::string_view name) const {
  const auto values = all(name);
  EXPECT_LE(values.size(), 1u) << name;
  return values.empty() ? "" : values.front();
}

// ---------------------------------------------------------------------------------- HttpConnection

struct HttpConnection::Tls {
  explicit Tls(const HttpServerTls& options)
      : context(SSL_CTX_new(TLS_server_method()), &SSL_CTX_free) {
    const auto certificate = from_pem(options.certificate, &PEM_read_bio_X509, &X509_free);
    const auto key = from_pem(options.key, &PEM_read_bio_PrivateKey, &EVP_PKEY_free);
    SSL_CTX_use_certificate(context.get(), certificate.get());
    SSL_CTX_use_PrivateKey(context.get(), key.get());
    if (options.alpn) SSL_CTX_set_alpn_select_cb(context.get(), &choose_http1, nullptr);
    if (!options.client_ca.empty()) {
      const auto authority = from_pem(options.client_ca, &PEM_read_bio_X509, &X509_free);
      X509_STORE_add_cert(SSL_CTX_get_cert_store(context.get()), authority.get());
      SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
      // Tracking the client in resumed sessions would also work; this is simpler.
      SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
      SSL_CTX_set_options(context.get(), SSL_OP_NO_TICKET);
      SSL_CTX_set_num_tickets(context.get(), 0);
    }
  }

  std::unique_ptr<SSL_CTX, void (*)(SSL_CTX*)> context;
};

HttpConnection::HttpConnection(int fd, int index) : index_(index), fd_(fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

HttpConnection::~HttpConnection() { close(); }

bool HttpConnection::handshake(Tls& tls) {
  SSL* ssl = SSL_new(tls.context.get());
  SSL_set_fd(ssl, fd_);
  ssl_ = ssl;
  const bool ok = SSL_accept(ssl) == 1;
  ERR_clear_error();
  return ok;
}

std::string HttpConnection::server_name() const {
  const char* name =
      ssl_ == nullptr ? nullptr : SSL_get_servername(ssl_of(ssl_), TLSEXT_NAMETYPE_host_name);
  return name == nullptr ? "" : name;
}

std::string HttpConnection::client_name() const {
  if (ssl_ == nullptr) return "";
  X509* certificate = SSL_get0_peer_certificate(ssl_of(ssl_));
  if (certificate == nullptr) return "";
  char name[256] = {};
  X509_NAME_get_text_by_NID(X509_get_subject_name(certificate), NID_commonName, name, sizeof name);
  return name;
}

std::ptrdiff_t HttpConnection::read_some(char* data, std::size_t size) {
  if (ssl_ != nullptr) {
    const int n = SSL_read(ssl_of(ssl_), data, static_cast<int>(size));
    ERR_clear_error();
    return n;
  }
  ssize_t n = 0;
  do {
    n = recv(fd_, data, size, 0);
  } while (n < 0 && errno == EINTR);
  return n;
}

bool HttpConnection::fill() {
  char piece[65536];
  const auto n = read_some(piece, sizeof piece);
  if (n <= 0) return false;
  buffer_.append(piece, static_cast<std::size_t>(n));
  return true;
}

std::optional<HttpRequest> HttpConnection::read_request_head() {
  std::size_t end = 0;
  while ((end = buffer_.find("\r\n\r\n")) == std::string::npos) {
    if (!fill()) return std::nullopt;
  }
  HttpRequest request;
  std::string_view head = std::string_view(buffer_).substr(0, end);
  std::string_view line = head.substr(0, head.find("\r\n"));
  request.method = line.substr(0, line.find(' '));
  line.remove_prefix(std::min(line.size(), request.method.size() + 1));
  request.target = line.substr(0, line.find(' '));
  while (head.find("\r\n") != std::string_view::npos) {
    head.remove_prefix(head.find("\r\n") + 2);
    line = head.substr(0, head.find("\r\n"));
    const std::size_t colon = line.find(':');
    const std::size_t value = line.find_first_not_of(' ', colon + 1);
    request.headers.emplace_back(line.substr(0, colon),
                                 value == std::string_view::npos ? "" : line.substr(value));
  }
  buffer_.erase(0, end + 4);
  return request;
}

bool HttpConnection::read_body(HttpRequest& request) {
  const auto take = [&](std::size_t size, std::string& out) {
    while (buffer_.size() < size)
      if (!fill()) return false;
    out.append(buffer_, 0, size);
    buffer_.erase(0, size);
    return true;
  };
  if (request.header("Transfer-Encoding") != "chunked") {
    const std::string length = request.header("Content-Length");
    return take(length.empty() ? 0 : std::stoul(length), request.body);
  }
  for (;;) {
    std::size_t end = 0;
    while ((end = buffer_.find("\r\n")) == std::string::npos)
      if (!fill()) return false;
    const std::size_t size = std::stoul(buffer_.substr(0, end), nullptr, 16);
    buffer_.erase(0, end + 2);
    std::string line_end;
    if (!take(size, request.body) || !take(2, line_end)) return false;
    if (size == 0) return true;
  }
}

std::optional<HttpRequest> HttpConnection::read_request() {
  auto request = read_request_head();
  if (request && !read_body(*request)) return std::nullopt;
  return request;
}

void HttpConnection::wait_for_close() {
  buffer_.clear();
  while (fill()) buffer_.clear();
}

bool HttpConnection::write(std::string_view bytes) {
  while (!bytes.empty()) {
    if (ssl_ != nullptr) {
      const std::size_t piece = std::min<std::size_t>(bytes.size(), 1u << 16);
      const int n = SSL_write(ssl_of(ssl_), bytes.data(), static_cast<int>(piece));
      ERR_clear_error();
      if (n <= 0) return false;
      written_ += static_cast<std::size_t>(n);
      bytes.remove_prefix(static_cast<std::size_t>(n));
      continue;
    }
    const ssize_t n = send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (n >= 0) {
      written_ += static_cast<std::size_t>(n);
      bytes.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      pollfd writable{fd_, POLLOUT, 0};
      if (poll(&writable, 1, 100) == 0) {
        stalled_ = true;
        poll(&writable, 1, -1);
        stalled_ = false;
      }
    } else if (errno != EINTR) {
      return false;
    }
  }
  return true;
}

bool HttpConnection::respond(const HttpResponse& response) {
  std::string head = "HTTP/1.1 " + std::to_string(response.status) + " Whatever\r\n";
  if (!response.content_type.empty()) head += "Content-Type: " + response.content_type + "\r\n";
  for (const auto& header : response.headers) head += header + "\r\n";
  head += "Content-Length: " + std::to_string(response.body.size()) + "\r\n\r\n";
  return write(head + response.body);
}

bool HttpConnection::begin_chunks(int status, std::string_view content_type) {
  return write("HTTP/1.1 " + std::to_string(status) + " Whatever\r\nContent-Type: " +
               std::string(content_type) + "\r\nTransfer-Encoding: chunked\r\n\r\n");
}

bool HttpConnection::chunk(std::string_view bytes) {
  char size[32];
  std::snprintf(size, sizeof size, "%zx\r\n", bytes.size());
  std::string out = size;
  out += bytes;
  out += "\r\n";
  return write(out);
}

bool HttpConnection::end_chunks() { return write("0\r\n\r\n"); }

void HttpConnection::reset() {
  const linger at_once{1, 0};
  setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  SSL_free(ssl_of(std::exchange(ssl_, nullptr)));
  const std::lock_guard lock(mutex_);
  ::close(std::exchange(fd_, -1));
}

void HttpConnection::close() {
  if (ssl_ != nullptr) {
    SSL_shutdown(ssl_of(ssl_));
    ERR_clear_error();
    SSL_free(ssl_of(std::exchange(ssl_, nullptr)));
  }
  const std::lock_guard lock(mutex_);
  if (fd_ >= 0) ::close(std::exchange(fd_, -1));
}

void HttpConnection::let_client_read() {
  ::shutdown(fd_, SHUT_WR);
  char piece[4096];
  while (recv(fd_, piece, sizeof piece, 0) > 0) {
  }
}

void HttpConnection::abort() {
  const std::lock_guard lock(mutex_);
  if (fd_ < 0) return;
  const linger at_once{1, 0};
  setsockopt(fd_, SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
  ::shutdown(fd_, SHUT_RDWR);
}

void HttpConnection::tunnel_to(int port) {
  const int other = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(other, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) {
    pollfd ends[2] = {{fd_, POLLIN, 0}, {other, POLLIN, 0}};
    bool open = send(other, buffer_.data(), buffer_.size(), MSG_NOSIGNAL) >= 0;
    buffer_.clear();
    char piece[65536];
    while (open && poll(ends, 2, -1) > 0) {
      for (int i = 0; i < 2 && open; ++i) {
        if (ends[i].revents == 0) continue;
        const ssize_t n = recv(ends[i].fd, piece, sizeof piece, 0);
        open = n > 0 && send(ends[1 - i].fd, piece, static_cast<std::size_t>(n), MSG_NOSIGNAL) == n;
      }
    }
  }
  ::close(other);
}

// -------------------------------------------------------------------------------------- HttpServer

HttpServer::HttpServer(Script script, std::optional<HttpServerTls> tls, const std::string& address)
    : script_(std::move(script)), address_(address) {
  if (tls) tls_ = std::make_unique<HttpConnection::Tls>(*tls);
  listen_fd_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in at{};
  at.sin_family = AF_INET;
  inet_pton(AF_INET, address.c_str(), &at.sin_addr);
  socklen_t size = sizeof at;
  if (bind(listen_fd_, reinterpret_cast<sockaddr*>(&at), size) != 0 ||
      listen(listen_fd_, 512) != 0 ||
      getsockname(listen_fd_, reinterpret_cast<sockaddr*>(&at), &size) != 0) {
    throw std::runtime_error("cannot listen on " + address + ": " + std::strerror(errno));
  }
  port_ = ntohs(at.sin_port);
  acceptor_ = std::thread([this] { accept_loop(); });
}

HttpServer::~HttpServer() {
  stop_listening();
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    for (const auto& connection : connections_) connection->abort();
  }
  for (auto& thread : threads_) thread.join();
}

HttpServer::Script HttpServer::answering(Handler handler) {
  return [handler = std::move(handler)](HttpConnection& connection) {
    while (const auto request = connection.read_request())
      if (!connection.respond(handler(*request))) break;
  };
}

std::string HttpServer::url() const {
  return (tls_ ? "https://" : "http://") + address_ + ":" + std::to_string(port_);
}

void HttpServer::reset_all() {
  const std::lock_guard lock(mutex_);
  for (const auto& connection : connections_) connection->abort();
}

void HttpServer::stop_listening() {
  if (!acceptor_.joinable()) return;
  ::shutdown(listen_fd_, SHUT_RDWR);
  acceptor_.join();
  ::close(listen_fd_);
}

void HttpServer::accept_loop() {
  for (;;) {
    const int fd = accept4(listen_fd_, nullptr, nullptr, SOCK_CLOEXEC);
    if (fd < 0 && (errno == EINTR || errno == ECONNABORTED)) continue;
    if (fd < 0) return;
    const std::lock_guard lock(mutex_);
    const std::shared_ptr<HttpConnection> connection(new HttpConnection(fd, accepted_++));
    ++open_;
    connections_.push_back(connection);
    if (stopping_) connection->abort();
    threads_.emplace_back([this, connection] {
      block_sigpipe();
      if (tls_ && !connection->handshake(*tls_)) {
        ++failed_handshakes_;
        connection->let_client_read();
      } else {
        script_(*connection);
      }
      connection->close();
      --open_;
    });
  }
}

}  // namespace lookout::test
