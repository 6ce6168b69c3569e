#include "lookout/base/http/transport.h"

#include <fmt/format.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <array>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/ssl/error.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/system/system_error.hpp>
#include <utility>

#include "lookout/base/async_event.h"
#include "lookout/base/error.h"
#include "lookout/base/self_signed_certificate.h"

namespace lookout::http {
namespace {

namespace asio = boost::asio;
using asio::ip::tcp;
using boost::system::error_code;

constexpr std::size_t kReadSize = 16 * 1024;

std::string address_of(const tcp::socket& socket) {
  error_code error;
  const auto address = socket.remote_endpoint(error).address();
  if (error) return {};
  // Show IPv4 clients of a dual-stack socket as IPv4.
  if (address.is_v6() && address.to_v6().is_v4_mapped())
    return asio::ip::make_address_v4(asio::ip::v4_mapped, address.to_v6()).to_string();
  return address.to_string();
}

void close_socket(tcp::socket& socket) {
  error_code ignored;
  socket.close(ignored);
}

class PlainTransport final : public Transport {
 public:
  explicit PlainTransport(tcp::socket socket)
      : socket_(std::move(socket)), address_(address_of(socket_)) {}

  Awaitable<void> handshake() override { co_return; }

  // A waiting connection holds no buffer.
  Awaitable<bool> read(std::string& input) override {
    co_await socket_.async_wait(tcp::socket::wait_read, asio::use_awaitable);
    co_return read_what_is_there(input);
  }

  std::size_t write_now(std::span<const asio::const_buffer> buffers) override {
    error_code error;
    const std::size_t written = socket_.write_some(buffers, error);
    if (error == asio::error::would_block || error == asio::error::try_again) return 0;
    if (error) throw boost::system::system_error(error);
    return written;
  }

  Awaitable<void> write(std::span<const asio::const_buffer> buffers) override {
    co_await asio::async_write(socket_, buffers, asio::use_awaitable);
  }

  Awaitable<void> shutdown() override {
    error_code ignored;
    socket_.shutdown(tcp::socket::shutdown_send, ignored);
    co_return;
  }

  void close() override { close_socket(socket_); }
  std::string client_address() const override { return address_; }

 private:
  // Not in the coroutine, whose frame would hold the buffer while it waits.
  bool read_what_is_there(std::string& input) {
    std::array<char, kReadSize> buffer;  // NOLINT: filled before it is read
    error_code error;
    const std::size_t n = socket_.read_some(asio::buffer(buffer), error);
    if (error == asio::error::eof) return false;
    if (error == asio::error::would_block || error == asio::error::try_again) return true;
    if (error) throw boost::system::system_error(error);
    input.append(buffer.data(), n);
    return true;
  }

  tcp::socket socket_;
  std::string address_;
};

std::vector<std::string> name_entries(X509_NAME* name, int nid) {
  std::vector<std::string> out;
  for (int i = -1; (i = X509_NAME_get_index_by_NID(name, nid, i)) >= 0;) {
    unsigned char* text = nullptr;
    const int size =
        ASN1_STRING_to_UTF8(&text, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(name, i)));
    if (size >= 0) {
      out.emplace_back(reinterpret_cast<const char*>(text), static_cast<std::size_t>(size));
      OPENSSL_free(text);
    }
  }
  return out;
}

std::string fingerprint_of(const X509* certificate) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int size = 0;
  if (X509_digest(certificate, EVP_sha256(), digest.data(), &size) != 1) return {};
  return fmt::format("{:02x}", fmt::join(digest.begin(), digest.begin() + size, ""));
}

class TlsTransport final : public Transport {
 public:
  TlsTransport(tcp::socket socket, std::shared_ptr<asio::ssl::context> context)
      : context_(std::move(context)),
        address_(address_of(socket)),
        stream_(std::move(socket), *context_) {}

  Awaitable<void> handshake() override {
    co_await stream_.async_handshake(asio::ssl::stream_base::server, asio::use_awaitable);
  }

  Awaitable<bool> read(std::string& input) override {
    error_code error;
    const std::size_t n = co_await stream_.async_read_some(
        asio::buffer(buffer_), asio::redirect_error(asio::use_awaitable, error));
    if (error == asio::error::eof || error == asio::ssl::error::stream_truncated) co_return false;
    if (error) throw boost::system::system_error(error);
    input.append(buffer_.data(), n);
    co_return true;
  }

  Awaitable<void> write(std::span<const asio::const_buffer> buffers) override {
    // Join small pieces into one TLS record.
    std::string joined;
    joined.reserve(asio::buffer_size(buffers));
    for (const auto& buffer : buffers)
      joined.append(static_cast<const char*>(buffer.data()), buffer.size());
    co_await asio::async_write(stream_, asio::buffer(joined), asio::use_awaitable);
  }

  // Sends close_notify without waiting for the peer's, which read() receives after all other data.
  // A shutdown that waits treats other data as an error, and closes the connection before the client
  // has read the response. OpenSSL does not wait if it has already received close_notify.
  Awaitable<void> shutdown() override {
    struct Outcome {
      explicit Outcome(const asio::any_io_executor& executor) : event(executor) {}
      AsyncEvent event;
      bool done = false;
    };
    const asio::any_io_executor executor = co_await asio::this_coro::executor;
    const auto outcome = std::make_shared<Outcome>(executor);
    SSL* const ssl = stream_.native_handle();
    const int before = SSL_get_shutdown(ssl);
    SSL_set_shutdown(ssl, before | SSL_RECEIVED_SHUTDOWN);
    stream_.async_shutdown([outcome](const error_code&) {
      outcome->done = true;
      outcome->event.ring_here();
    });
    SSL_set_shutdown(ssl, (SSL_get_shutdown(ssl) & ~SSL_RECEIVED_SHUTDOWN) | before);
    while (!outcome->done) co_await outcome->event.wait();
  }

  void close() override {
    error_code ignored;
    stream_.lowest_layer().close(ignored);
  }

  std::optional<PeerCertificate> peer() const override {
    SSL* ssl = const_cast<TlsTransport*>(this)->stream_.native_handle();
    X509* certificate = SSL_get0_peer_certificate(ssl);
    if (certificate == nullptr) return std::nullopt;
    PeerCertificate out;
    out.valid = SSL_get_verify_result(ssl) == X509_V_OK;
    X509_NAME* subject = X509_get_subject_name(certificate);
    const auto names = name_entries(subject, NID_commonName);
    if (!names.empty()) out.common_name = names.back();
    out.organizations = name_entries(subject, NID_organizationName);
    out.fingerprint = fingerprint_of(certificate);
    return out;
  }

  std::string client_address() const override { return address_; }

 private:
  std::shared_ptr<asio::ssl::context> context_;
  std::string address_;
  asio::ssl::stream<tcp::socket> stream_;
  std::array<char, 4096> buffer_;
};

int select_http(SSL* /*ssl*/, const unsigned char** out, unsigned char* out_size,
                const unsigned char* in, unsigned in_size, void* /*unused*/) {
  static constexpr unsigned char kOurs[] = {8, 'h', 't', 't', 'p', '/', '1', '.', '1'};
  unsigned char* chosen = nullptr;
  if (SSL_select_next_proto(&chosen, out_size, kOurs, sizeof kOurs, in, in_size) !=
      OPENSSL_NPN_NEGOTIATED)
    return SSL_TLSEXT_ERR_NOACK;
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

std::shared_ptr<asio::ssl::context> server_context() {
  auto out = std::make_shared<asio::ssl::context>(asio::ssl::context::tls_server);
  SSL_CTX* const native = out->native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  SSL_CTX_set_mode(native, SSL_MODE_RELEASE_BUFFERS);
  SSL_CTX_set_alpn_select_cb(native, select_http, nullptr);
  return out;
}

}  // namespace

std::shared_ptr<asio::ssl::context> make_tls_context(const std::string& cert_file,
                                                     const std::string& key_file,
                                                     const std::string& client_ca_file) {
  auto context = server_context();
  SSL_CTX* const native = context->native_handle();
  const auto demand = [](const error_code& error, const std::string& file) {
    if (error) throw Error(fmt::format("cannot use {}: {}", file, error.message()));
  };
  error_code error;
  context->use_certificate_chain_file(cert_file, error);
  demand(error, cert_file);
  context->use_private_key_file(key_file, asio::ssl::context::pem, error);
  demand(error, key_file);
  if (SSL_CTX_check_private_key(native) != 1)
    throw Error(
        fmt::format("the key in {} does not belong to the certificate in {}", key_file, cert_file));
  if (!client_ca_file.empty()) {
    context->load_verify_file(client_ca_file, error);
    demand(error, client_ca_file);
    STACK_OF(X509_NAME)* names = SSL_load_client_CA_file(client_ca_file.c_str());
    if (names != nullptr) SSL_CTX_set_client_CA_list(native, names);
    context->set_verify_mode(asio::ssl::verify_peer);
    // An invalid client certificate leads to a 401 response, not to a TLS error.
    context->set_verify_callback(
        [](bool /*valid*/, asio::ssl::verify_context& /*details*/) { return true; });
    SSL_CTX_set_session_id_context(native, reinterpret_cast<const unsigned char*>("lookout"), 7);
  }
  return context;
}

std::shared_ptr<asio::ssl::context> make_self_signed_context() {
  auto context = server_context();
  const SelfSignedCertificate certificate;
  context->use_certificate_chain(asio::buffer(certificate.certificate()));
  context->use_private_key(asio::buffer(certificate.key()), asio::ssl::context::pem);
  return context;
}

std::unique_ptr<Transport> make_plain_transport(tcp::socket socket) {
  // Non-blocking: reads and writes are tried before waiting.
  error_code ignored;
  socket.non_blocking(true, ignored);
  return std::make_unique<PlainTransport>(std::move(socket));
}

std::unique_ptr<Transport> make_tls_transport(tcp::socket socket,
                                              std::shared_ptr<asio::ssl::context> context) {
  return std::make_unique<TlsTransport>(std::move(socket), std::move(context));
}

}  // namespace lookout::http
