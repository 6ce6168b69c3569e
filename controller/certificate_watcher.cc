#include "controller/certificate_watcher.h"

#include <openssl/ssl.h>
#include <openssl/x509.h>

#include <chrono>
#include <utility>

#include "lookout/base/detail/log.h"
#include "lookout/base/error.h"
#include "lookout/base/http/transport.h"

namespace lookout::controller::detail {

CertificateWatcher::CertificateWatcher(std::string server, std::string certificate_file,
                                       std::string key_file, std::string client_ca_file)
    : server_(std::move(server)),
      certificate_file_(std::move(certificate_file)),
      key_file_(std::move(key_file)),
      client_ca_file_(std::move(client_ca_file)) {
  files_.emplace_back(certificate_file_);
  files_.emplace_back(key_file_);
  if (!client_ca_file_.empty()) files_.emplace_back(client_ca_file_);
  // Poll before the files are used: the next poll then sees later changes.
  for (WatchedFile& file : files_) file.poll(std::chrono::system_clock::now());
  current_ = read();
  serving_ = read();
  const auto callback = [](SSL* ssl, void* self) { return choose(ssl, self); };
  SSL_CTX_set_cert_cb(serving_->native_handle(), callback, this);
}

CertificateWatcher::Context CertificateWatcher::read() {
  ++reads_;
  try {
    Context out = http::make_tls_context(certificate_file_, key_file_, client_ca_file_);
    if (!client_ca_file_.empty()) {
      // Reject other clients in the handshake instead of answering requests with 401.
      SSL_CTX_set_verify(out->native_handle(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT,
                         nullptr);
    }
    return out;
  } catch (...) {
    ++errors_;
    throw;
  }
}

CertificateWatcher::Context CertificateWatcher::current() const {
  const std::lock_guard lock(mutex_);
  return current_;
}

int CertificateWatcher::choose(void* ssl, void* self) {
  return static_cast<const CertificateWatcher*>(self)->apply_to(ssl) ? 1 : 0;
}

bool CertificateWatcher::apply_to(void* ssl) const {
  SSL* const connection = static_cast<SSL*>(ssl);
  const Context context = current();
  SSL_CTX* const given = context->native_handle();
  // OpenSSL keeps one certificate per key type: remove an old one of another type.
  SSL_certs_clear(connection);
  STACK_OF(X509)* chain = nullptr;
  SSL_CTX_get0_chain_certs(given, &chain);
  if (SSL_use_cert_and_key(connection, SSL_CTX_get0_certificate(given),
                           SSL_CTX_get0_privatekey(given), chain, 1) != 1)
    return false;
  if (client_ca_file_.empty()) return true;
  SSL_set_client_CA_list(connection, SSL_dup_CA_list(SSL_CTX_get_client_CA_list(given)));
  return SSL_set1_verify_cert_store(connection, SSL_CTX_get_cert_store(given)) == 1;
}

void CertificateWatcher::poll() {
  std::string complaint;
  for (WatchedFile& file : files_) {
    if (file.poll(std::chrono::system_clock::now())) stale_ = true;
    if (!file.error().empty()) complaint = "cannot read " + file.path() + ": " + file.error();
  }
  if (!complaint.empty()) {
    ++reads_;
    ++errors_;
  } else if (stale_) {
    try {
      Context next = read();
      const std::lock_guard lock(mutex_);
      current_.swap(next);
      stale_ = false;
    } catch (const Error& e) {
      complaint = e.what();
    }
    if (!stale_) log::info("{}: serves a new certificate", server_);
  }
  if (!complaint.empty() && complaint != complaint_)
    log::error("{}: keeps the certificate that it has: {}", server_, complaint);
  complaint_ = std::move(complaint);
}

void CertificateWatcher::collect(std::vector<metrics::Sample>& out) const {
  metrics::Collector collector(out, {});
  collector.counter("certwatcher_read_certificate_total", "Total number of certificate reads",
                    reads_);
  collector.counter("certwatcher_read_certificate_errors_total",
                    "Total number of certificate read errors", errors_);
}

}  // namespace lookout::controller::detail
