#include "apiserver/grpc/tls.h"

#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <boost/asio/buffer.hpp>
#include <string_view>

#include "lookout/base/error.h"

namespace lookout::apiserver::grpc {
namespace {

namespace ssl = boost::asio::ssl;

constexpr unsigned char kHttp2[] = {2, 'h', '2'};

bool is_address(const std::string& host) {
  boost::system::error_code error;
  boost::asio::ip::make_address(host, error);
  return !error;
}

void check(const boost::system::error_code& error, const char* what) {
  if (error) throw Error(std::string(what) + ": " + error.message());
}

}  // namespace

ssl::context make_client_context(const std::string& ca, const std::string& certificate,
                                 const std::string& key) {
  ssl::context out(ssl::context::tls_client);
  SSL_CTX* const native = out.native_handle();
  SSL_CTX_set_min_proto_version(native, TLS1_2_VERSION);
  SSL_CTX_set_alpn_protos(native, kHttp2, sizeof kHttp2);
  out.set_verify_mode(ssl::verify_peer);
  boost::system::error_code error;
  if (ca.empty()) {
    out.set_default_verify_paths(error);
  } else {
    out.add_certificate_authority(boost::asio::buffer(ca), error);
  }
  check(error, "the CA certificate cannot be used");
  if (certificate.empty()) return out;
  out.use_certificate_chain(boost::asio::buffer(certificate), error);
  check(error, "the client certificate cannot be used");
  out.use_private_key(boost::asio::buffer(key), ssl::context::pem, error);
  check(error, "the key of the client certificate cannot be used");
  return out;
}

void expect_server(TlsStream& stream, const std::string& host) {
  SSL* const native = stream.native_handle();
  SSL_set_hostflags(native, X509_CHECK_FLAG_NEVER_CHECK_SUBJECT);
  if (is_address(host)) {
    // OpenSSL does not support zones such as in "fe80::1%eth0".
    if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(native), host.c_str()) != 1)
      throw Error("the server's address cannot be compared with a certificate");
  } else {
    // The macro SSL_set_tlsext_host_name has an old-style cast.
    std::string name = host;
    SSL_ctrl(native, SSL_CTRL_SET_TLSEXT_HOSTNAME, TLSEXT_NAMETYPE_host_name, name.data());
    if (SSL_set1_host(native, host.c_str()) != 1)
      throw Error("the server's name cannot be compared with a certificate");
  }
}

bool speaks_http2(TlsStream& stream) {
  const unsigned char* chosen = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(stream.native_handle(), &chosen, &size);
  return std::string_view(reinterpret_cast<const char*>(chosen), size) == "h2";
}

}  // namespace lookout::apiserver::grpc
