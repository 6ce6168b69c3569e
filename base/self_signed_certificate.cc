#include "lookout/base/self_signed_certificate.h"

#include <fmt/format.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

#include <cerrno>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string_view>
#include <system_error>

#include "lookout/base/base64.h"
#include "lookout/base/detail/free_with.h"
#include "lookout/base/error.h"

namespace lookout {
namespace {

using detail::FreeWith;
using Bio = std::unique_ptr<BIO, FreeWith<BIO_free>>;
using Certificate = std::unique_ptr<X509, FreeWith<X509_free>>;
using Extension = std::unique_ptr<X509_EXTENSION, FreeWith<X509_EXTENSION_free>>;
using Key = std::unique_ptr<EVP_PKEY, FreeWith<EVP_PKEY_free>>;

void check(bool ok, std::string_view what) {
  if (!ok) throw Error(fmt::format("OpenSSL: {}", what));
}

void add_extension(X509* certificate, int id, const std::string& value) {
  const Extension extension(X509V3_EXT_conf_nid(nullptr, nullptr, id, value.c_str()));
  check(extension != nullptr, fmt::format("\"{}\" is not a valid name", value));
  check(X509_add_ext(certificate, extension.get(), -1) == 1,
        "cannot add an extension to the certificate");
}

/// Sets a random serial number, because certificates of one issuer must have different ones.
void number(X509* certificate) {
  std::uint64_t serial = 0;
  check(RAND_bytes(reinterpret_cast<unsigned char*>(&serial), sizeof serial) == 1, "no randomness");
  check(ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate), serial >> 1) == 1,
        "cannot set the serial number of the certificate");
}

std::string text_of(const Bio& bio) {
  char* data = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &data);
  return {data, static_cast<std::size_t>(size)};
}

std::string why_not(int error) { return std::generic_category().message(error); }

void write(const std::filesystem::path& file, const std::string& text) {
  std::ofstream out(file, std::ios::binary);
  out << text;
  out.close();
  if (!out) throw Error(fmt::format("{} cannot be written: {}", file.string(), why_not(errno)));
}

}  // namespace

SelfSignedCertificate::SelfSignedCertificate(const std::vector<std::string>& names) {
  const Key key(EVP_EC_gen("P-256"));
  const Certificate certificate(X509_new());
  check(key != nullptr && certificate != nullptr, "no key or no certificate");
  X509* const x509 = certificate.get();
  check(X509_set_version(x509, X509_VERSION_3) == 1, "cannot set the version of the certificate");
  number(x509);
  constexpr long kMinute = 60;
  constexpr long kYear = 365 * 24 * 60 * kMinute;
  X509_gmtime_adj(X509_getm_notBefore(x509), -kMinute);
  X509_gmtime_adj(X509_getm_notAfter(x509), kYear);
  const std::string common_name = "lookout";
  X509_NAME* const name = X509_get_subject_name(x509);
  check(X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_UTF8,
                                   reinterpret_cast<const unsigned char*>(common_name.c_str()), -1,
                                   -1, 0) == 1 &&
            X509_set_issuer_name(x509, name) == 1 && X509_set_pubkey(x509, key.get()) == 1,
        "cannot set the name or the key of the certificate");
  std::string alternatives;
  for (const auto& each : names) alternatives += (alternatives.empty() ? "" : ",") + each;
  if (!alternatives.empty()) add_extension(x509, NID_subject_alt_name, alternatives);
  add_extension(x509, NID_basic_constraints, "critical,CA:TRUE");
  check(X509_sign(x509, key.get(), EVP_sha256()) > 0, "the certificate cannot be signed");

  const Bio certificate_text(BIO_new(BIO_s_mem()));
  const Bio key_text(BIO_new(BIO_s_mem()));
  check(PEM_write_bio_X509(certificate_text.get(), x509) == 1 &&
            PEM_write_bio_PrivateKey(key_text.get(), key.get(), nullptr, nullptr, 0, nullptr,
                                     nullptr) == 1,
        "the certificate cannot be written");
  certificate_ = text_of(certificate_text);
  key_ = text_of(key_text);
}

std::string SelfSignedCertificate::ca_bundle() const { return encode_base64(certificate_); }

void SelfSignedCertificate::write_to(const std::filesystem::path& folder) const {
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  if (error) throw Error(fmt::format("{} cannot be created: {}", folder.string(), error.message()));
  write(folder / "tls.key", key_);
  write(folder / "tls.crt", certificate_);
}

}  // namespace lookout
