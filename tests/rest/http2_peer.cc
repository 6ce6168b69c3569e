#include "tests/rest/http2_peer.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <openssl/bio.h>
#include <openssl/pem.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <csignal>
#include <map>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string_view>
#include <thread>
#include <vector>

#include "lookout/base/pinned.h"

namespace lookout::test {
namespace {

// RFC 9113, 6.
enum Frame : std::uint8_t {
  kData = 0,
  kHeaders = 1,
  kReset = 3,
  kSettings = 4,
  kPing = 6,
  kGoAway = 7
};
constexpr std::uint8_t kAck = 1;
constexpr std::uint8_t kEndStream = 1;
constexpr std::uint8_t kEndHeaders = 4;
constexpr std::size_t kHeadSize = 9;

std::string number(std::uint32_t value) {
  std::string out;
  for (int shift = 24; shift >= 0; shift -= 8) out += static_cast<char>(value >> shift & 0xFF);
  return out;
}
std::uint32_t number_in(std::string_view bytes) {
  std::uint32_t out = 0;
  for (const char c : bytes) out = out << 8 | static_cast<unsigned char>(c);
  return out;
}

int choose_http2(SSL*, const unsigned char** out, unsigned char* size, const unsigned char* in,
                 unsigned in_size, void*) {
  static constexpr unsigned char kOffered[] = {2, 'h', '2'};
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, size, kOffered, sizeof kOffered, in, in_size) !=
      OPENSSL_NPN_NEGOTIATED)
    return SSL_TLSEXT_ERR_ALERT_FATAL;
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

struct FreeSsl {
  void operator()(SSL* ssl) const { SSL_free(ssl); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
};

class Wire : public Http2Peer::Connection {
 public:
  Wire(SSL_CTX* context, int fd) : ssl_(SSL_new(context)), fd_(fd) { SSL_set_fd(ssl_.get(), fd); }

  bool accept() { return SSL_accept(ssl_.get()) == 1; }
  bool read(std::string& out, std::size_t size) {
    out.resize(size);
    for (std::size_t got = 0; got < size;) {
      const int n = SSL_read(ssl_.get(), out.data() + got, static_cast<int>(size - got));
      if (n <= 0) return false;
      got += static_cast<std::size_t>(n);
    }
    return true;
  }
  void frame(Frame type, std::uint8_t flags, std::uint32_t stream, const std::string& payload) {
    std::string out = number(static_cast<std::uint32_t>(payload.size())).substr(1);
    out += static_cast<char>(type);
    out += static_cast<char>(flags);
    out += number(stream) + payload;
    SSL_write(ssl_.get(), out.data(), static_cast<int>(out.size()));
  }

  void begin(std::uint32_t stream, const std::string& body) override {
    constexpr const char* kStatus200 = "\x88";  // index in HPACK's static table
    frame(kHeaders, kEndHeaders, stream, kStatus200);
    frame(kData, 0, stream, body);
  }
  void respond(std::uint32_t stream, const std::string& body) override {
    begin(stream, body);
    frame(kData, kEndStream, stream, "");
  }
  void reset(std::uint32_t stream, std::uint32_t error) override {
    frame(kReset, 0, stream, number(error));
  }
  void go_away(std::uint32_t last_stream) override {
    frame(kGoAway, 0, 0, number(last_stream) + number(0));
  }
  void close() override { shutdown(fd_, SHUT_RDWR); }

 private:
  const std::unique_ptr<SSL, FreeSsl> ssl_;
  const int fd_;
};

}  // namespace

class Http2Peer::Impl : public base::Pinned {
 public:
  Impl(const KeyPair& pair, Script script)
      : script_(std::move(script)), context_(SSL_CTX_new(TLS_server_method())) {
    const auto bio_of = [](const std::string& pem) {
      return std::unique_ptr<BIO, FreeSsl>(
          BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
    };
    const std::unique_ptr<X509, FreeSsl> certificate(
        PEM_read_bio_X509(bio_of(pair.certificate).get(), nullptr, nullptr, nullptr));
    const std::unique_ptr<EVP_PKEY, FreeSsl> key(
        PEM_read_bio_PrivateKey(bio_of(pair.key).get(), nullptr, nullptr, nullptr));
    SSL_CTX_use_certificate(context_.get(), certificate.get());
    SSL_CTX_use_PrivateKey(context_.get(), key.get());
    SSL_CTX_set_alpn_select_cb(context_.get(), choose_http2, nullptr);

    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof at;
    auto* const address = reinterpret_cast<sockaddr*>(&at);
    listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (listener_ < 0 || bind(listener_, address, size) != 0 || listen(listener_, 16) != 0 ||
        getsockname(listener_, address, &size) != 0)
      throw std::runtime_error("cannot listen");
    port_ = ntohs(at.sin_port);
    acceptor_ = std::thread([this] { accept_loop(); });
  }
  ~Impl() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
      for (const int fd : fds_) shutdown(fd, SHUT_RDWR);
    }
    shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    for (auto& thread : threads_) thread.join();
    for (const int fd : fds_) ::close(fd);
    ::close(listener_);
  }

  int port() const { return port_; }

 private:
  void accept_loop() {
    for (int index = 0;; ++index) {
      const int fd = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (fd < 0) return;
      const std::lock_guard lock(mutex_);
      fds_.push_back(fd);
      if (stopping_) return;
      threads_.emplace_back([this, fd, index] { serve(fd, index); });
    }
  }

  void serve(int fd, int index) {
    constexpr std::string_view kPreface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    // A write to a closed connection is an error, not a signal.
    sigset_t broken_pipe;
    sigemptyset(&broken_pipe);
    sigaddset(&broken_pipe, SIGPIPE);
    pthread_sigmask(SIG_BLOCK, &broken_pipe, nullptr);
    Wire wire(context_.get(), fd);
    std::string bytes;
    if (!wire.accept() || !wire.read(bytes, kPreface.size()) || bytes != kPreface) return;
    wire.frame(kSettings, 0, 0, "");
    std::map<std::uint32_t, std::string> bodies;
    for (;;) {
      if (!wire.read(bytes, kHeadSize)) return;
      const std::string head = bytes;
      const auto type = static_cast<std::uint8_t>(head[3]);
      const auto flags = static_cast<std::uint8_t>(head[4]);
      const std::uint32_t stream = number_in(std::string_view(head).substr(5));
      if (!wire.read(bytes, number_in(std::string_view(head).substr(0, 3)))) return;
      if (type == kSettings && (flags & kAck) == 0) wire.frame(kSettings, kAck, 0, "");
      if (type == kPing && (flags & kAck) == 0) wire.frame(kPing, kAck, 0, bytes);
      if (type == kHeaders) bodies[stream] = "";
      if (type == kData) bodies[stream] += bytes;
      if ((type == kHeaders || type == kData) && (flags & kEndStream) != 0)
        script_(wire, {index, requests_++, stream, bodies[stream]});
    }
  }

  const Script script_;
  const std::unique_ptr<SSL_CTX, FreeSsl> context_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<int> requests_{0};
  std::mutex mutex_;
  bool stopping_ = false;  // guarded by mutex_, like the following members
  std::vector<int> fds_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

Http2Peer::Http2Peer(const KeyPair& pair, Script script)
    : impl_(std::make_unique<Impl>(pair, std::move(script))) {}
Http2Peer::~Http2Peer() = default;
int Http2Peer::port() const { return impl_->port(); }

}  // namespace lookout::test
