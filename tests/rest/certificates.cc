#include "tests/rest/certificates.h"

#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <atomic>
#include <stdexcept>

#include "rest/openssl_handles.h"

namespace lookout::test {
namespace {

using rest::detail::Bio;
using rest::detail::Certificate;
using rest::detail::Key;

void check(bool ok) {
  if (!ok) throw std::runtime_error("OpenSSL failed");
}

std::string text_of(const Bio& bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

void add_extension(X509* certificate, int id, const std::string& value) {
  X509_EXTENSION* extension = X509V3_EXT_conf_nid(nullptr, nullptr, id, value.c_str());
  check(extension != nullptr && X509_add_ext(certificate, extension, -1) == 1);
  X509_EXTENSION_free(extension);
}

/// Signed by `issuer`, or by itself.
KeyPair make(const CertificateOptions& options, const KeyPair* issuer) {
  const Key key(EVP_EC_gen("P-256"));
  check(key != nullptr);
  const Certificate certificate(X509_new());
  check(X509_set_version(certificate.get(), X509_VERSION_3) == 1);
  static std::atomic<long> serial{1};
  check(ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), serial++) == 1);
  constexpr long kDay = 24L * 3600;
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), options.expired ? -2 * kDay : -60);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), options.expired ? -kDay : kDay);
  X509_NAME* name = X509_get_subject_name(certificate.get());
  check(X509_NAME_add_entry_by_txt(
            name, "CN", MBSTRING_UTF8,
            reinterpret_cast<const unsigned char*>(options.common_name.c_str()), -1, -1, 0) == 1);
  check(X509_set_pubkey(certificate.get(), key.get()) == 1);
  std::string names;
  for (const auto& alternative : options.names) names += (names.empty() ? "" : ",") + alternative;
  if (!names.empty()) add_extension(certificate.get(), NID_subject_alt_name, names);

  if (issuer != nullptr) {
    const Bio authority_text(BIO_new_mem_buf(issuer->certificate.data(), -1));
    const Certificate authority(PEM_read_bio_X509(authority_text.get(), nullptr, nullptr, nullptr));
    const Bio secret_text(BIO_new_mem_buf(issuer->key.data(), -1));
    const Key secret(PEM_read_bio_PrivateKey(secret_text.get(), nullptr, nullptr, nullptr));
    check(authority && secret);
    check(X509_set_issuer_name(certificate.get(), X509_get_subject_name(authority.get())) == 1);
    check(X509_sign(certificate.get(), secret.get(), EVP_sha256()) > 0);
  } else {
    add_extension(certificate.get(), NID_basic_constraints, "critical,CA:TRUE");
    check(X509_set_issuer_name(certificate.get(), name) == 1);
    check(X509_sign(certificate.get(), key.get(), EVP_sha256()) > 0);
  }

  const Bio certificate_text(BIO_new(BIO_s_mem()));
  const Bio key_text(BIO_new(BIO_s_mem()));
  check(PEM_write_bio_X509(certificate_text.get(), certificate.get()) == 1);
  check(PEM_write_bio_PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr,
                                 nullptr) == 1);
  return {text_of(certificate_text), text_of(key_text)};
}

}  // namespace

KeyPair make_certificate(const std::string& common_name) {
  return make({.common_name = common_name}, nullptr);
}

KeyPair CertificateAuthority::issue(const CertificateOptions& options) const {
  return make(options, &pair_);
}

KeyPair CertificateAuthority::issue_local() const {
  return issue({.common_name = "local", .names = {"IP:127.0.0.1", "DNS:localhost"}});
}

std::string encrypt_key(const std::string& key) {
  const Bio in(BIO_new_mem_buf(key.data(), static_cast<int>(key.size())));
  const Key secret(PEM_read_bio_PrivateKey(in.get(), nullptr, nullptr, nullptr));
  check(secret != nullptr);
  const Bio out(BIO_new(BIO_s_mem()));
  unsigned char passphrase[] = "passphrase";
  check(PEM_write_bio_PrivateKey(out.get(), secret.get(), EVP_aes_128_cbc(), passphrase, 10,
                                 nullptr, nullptr) == 1);
  return text_of(out);
}

}  // namespace lookout::test
