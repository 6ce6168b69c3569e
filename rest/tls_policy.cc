#include "rest/tls_policy.h"

#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <openssl/x509v3.h>

#include <memory>

#include "lookout/base/detail/free_with.h"

namespace lookout::rest::detail {
namespace {

using Names = std::unique_ptr<GENERAL_NAMES, lookout::detail::FreeWith<GENERAL_NAMES_free>>;

bool has_alternative_name(const X509* certificate) {
  const Names names(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; names && i < sk_GENERAL_NAME_num(names.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(names.get(), i);
    if (name->type == GEN_DNS || name->type == GEN_IPADD) return true;
  }
  return false;
}

int verify(int good, X509_STORE_CTX* context) {
  if (good != 1 || X509_STORE_CTX_get_error_depth(context) != 0) return good;
  if (has_alternative_name(X509_STORE_CTX_get_current_cert(context))) return good;
  X509_STORE_CTX_set_error(context, X509_V_ERR_HOSTNAME_MISMATCH);
  return 0;
}

}  // namespace

CURLcode apply_tls_policy(CURL*, void* ssl_context, void* policy_pointer) {
  auto* const context = static_cast<SSL_CTX*>(ssl_context);
  const auto* const policy = static_cast<const TlsPolicy*>(policy_pointer);
  const long lowest = policy->only_tls13 ? TLS1_3_VERSION : TLS1_2_VERSION;
  if (SSL_CTX_get_min_proto_version(context) < lowest &&
      SSL_CTX_set_min_proto_version(context, lowest) != 1)
    return CURLE_SSL_CONNECT_ERROR;
  // Verbose mode is needed only for GOAWAYs: turn off libcurl's messages for each TLS record.
  SSL_CTX_set_msg_callback(context, nullptr);
  if (policy->alternative_names)
    SSL_CTX_set_verify(context, SSL_CTX_get_verify_mode(context), &verify);
  return CURLE_OK;
}

}  // namespace lookout::rest::detail
