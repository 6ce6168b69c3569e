#include "tests/rest/certificates.h"

#include <openssl/bio.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>

#include <memory>
#include <stdexcept>

namespace lookout::test {
namespace {

template <auto free>
struct Free {
  template <class T>
  void operator()(T* object) const {
    free(object);
  }
};
using Bio = std::unique_ptr<BIO, Free<BIO_free>>;
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;

void check(bool ok) {
  if (!ok) throw std::runtime_error("OpenSSL failed");
}

std::string text_of(const Bio& bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

}  // namespace

KeyPair make_certificate(const std::string& common_name) {
  const Key key(EVP_EC_gen("P-256"));
  check(key != nullptr);
  const std::unique_ptr<X509, Free<X509_free>> certificate(X509_new());
  check(X509_set_version(certificate.get(), X509_VERSION_3) == 1);
  check(ASN1_INTEGER_set(X509_get_serialNumber(certificate.get()), 1) == 1);
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -60);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), 24L * 3600);
  X509_NAME* name = X509_get_subject_name(certificate.get());
  check(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                                   reinterpret_cast<const unsigned char*>(common_name.c_str()), -1,
                                   -1, 0) == 1);
  check(X509_set_issuer_name(certificate.get(), name) == 1);
  check(X509_set_pubkey(certificate.get(), key.get()) == 1);
  check(X509_sign(certificate.get(), key.get(), EVP_sha256()) > 0);

  const Bio certificate_text(BIO_new(BIO_s_mem()));
  const Bio key_text(BIO_new(BIO_s_mem()));
  check(PEM_write_bio_X509(certificate_text.get(), certificate.get()) == 1);
  check(PEM_write_bio_PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr,
                                 nullptr) == 1);
  return {text_of(certificate_text), text_of(key_text)};
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
