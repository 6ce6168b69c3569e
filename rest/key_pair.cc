#include "rest/key_pair.h"

#include <openssl/err.h>
#include <openssl/pem.h>

#include <limits>

#include "rest/openssl_handles.h"

namespace lookout::rest::detail {
namespace {

Bio open(const std::string& pem) {
  return Bio(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

std::string check(const std::string& certificate, const std::string& key) {
  constexpr auto kLongest = static_cast<std::size_t>(std::numeric_limits<int>::max());
  if (certificate.size() > kLongest || key.size() > kLongest) return "too long";
  const Bio certificate_text = open(certificate);
  const Bio key_text = open(key);
  const Certificate leaf(
      PEM_read_bio_X509(certificate_text.get(), nullptr, no_passphrase, nullptr));
  if (!leaf) return "no certificate in PEM";
  const Key secret(PEM_read_bio_PrivateKey(key_text.get(), nullptr, no_passphrase, nullptr));
  if (!secret) return "no unencrypted private key in PEM";
  if (X509_check_private_key(leaf.get(), secret.get()) != 1) {
    return "the private key is not that of the certificate";
  }
  return {};
}

}  // namespace

std::string key_pair_error(const std::string& certificate, const std::string& key) {
  std::string out = check(certificate, key);
  ERR_clear_error();
  return out;
}

}  // namespace lookout::rest::detail
