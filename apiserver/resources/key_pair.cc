#include "apiserver/resources/key_pair.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/x509.h>

#include <memory>
#include <string_view>
#include <vector>

#include "apiserver/pem.h"
#include "lookout/base/detail/free_with.h"

namespace lookout::apiserver::resources {
namespace {

using Certificate = std::unique_ptr<X509, lookout::detail::FreeWith<X509_free>>;
using Key = std::unique_ptr<EVP_PKEY, lookout::detail::FreeWith<EVP_PKEY_free>>;

bool is_key(std::string_view name) {
  return name == "PRIVATE KEY" || name.ends_with(" PRIVATE KEY");
}

std::string names_of(const std::vector<PemBlock>& blocks) {
  std::vector<std::string_view> names;
  names.reserve(blocks.size());
  for (const PemBlock& block : blocks) names.push_back(block.name);
  return fmt::format("[{}]", fmt::join(names, " "));
}

/// Null if no block has such a name.
template <class Matches>
const PemBlock* find_block(const std::vector<PemBlock>& blocks, Matches matches) {
  for (const PemBlock& block : blocks) {
    if (matches(block.name)) return &block;
  }
  return nullptr;
}

std::string no_certificate(const std::vector<PemBlock>& blocks) {
  if (blocks.empty()) return "tls: failed to find any PEM data in certificate input";
  if (blocks.size() == 1 && blocks[0].name.ends_with("PRIVATE KEY")) {
    return "tls: failed to find certificate PEM data in certificate input, but did find a private "
           "key; PEM inputs may have been switched";
  }
  return fmt::format(
      "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM "
      "blocks "
      "of the following types: {}",
      names_of(blocks));
}

std::string no_key(const std::vector<PemBlock>& blocks) {
  if (blocks.empty()) return "tls: failed to find any PEM data in key input";
  if (blocks.size() == 1 && blocks[0].name == "CERTIFICATE")
    return "tls: found a certificate rather than a key in the PEM for the private key";
  return fmt::format(
      "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after "
      "skipping PEM blocks of the following types: {}",
      names_of(blocks));
}

std::string fault_of_pair(const std::string& certificate_der, const std::string& key_der) {
  const auto* data = reinterpret_cast<const unsigned char*>(certificate_der.data());
  const Certificate certificate(
      d2i_X509(nullptr, &data, static_cast<long>(certificate_der.size())));
  if (certificate == nullptr) return "x509: malformed certificate";
  data = reinterpret_cast<const unsigned char*>(key_der.data());
  const Key key(d2i_AutoPrivateKey(nullptr, &data, static_cast<long>(key_der.size())));
  if (key == nullptr) return "tls: failed to parse private key";
  const EVP_PKEY* const own = X509_get0_pubkey(certificate.get());
  if (own == nullptr) return "tls: unknown public key algorithm";
  if (EVP_PKEY_get_base_id(own) != EVP_PKEY_get_base_id(key.get()))
    return "tls: private key type does not match public key type";
  if (EVP_PKEY_eq(own, key.get()) != 1) return "tls: private key does not match public key";
  return {};
}

}  // namespace

std::string fault_of_key_pair(const std::string& certificate, const std::string& key) {
  const std::vector<PemBlock> certificates = read_pem(certificate);
  const std::vector<PemBlock> keys = read_pem(key);
  const PemBlock* const first =
      find_block(certificates, [](std::string_view name) { return name == "CERTIFICATE"; });
  if (first == nullptr) return no_certificate(certificates);
  const PemBlock* const own = find_block(keys, is_key);
  if (own == nullptr) return no_key(keys);
  std::string fault = fault_of_pair(first->data, own->data);
  ERR_clear_error();
  return fault;
}

}  // namespace lookout::apiserver::resources
