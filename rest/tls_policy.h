// TLS rules that libcurl has no option for.
#pragma once

#include <curl/curl.h>

namespace lookout::rest::detail {

struct TlsPolicy {
  bool only_tls13 = false;  // else 1.2 will do
  /// A certificate must say in its alternative names whom it is for, as Go demands (RFC 6125,
  /// 6.4.4). libcurl would make do with its common name.
  bool alternative_names = true;
};

/// For CURLOPT_SSL_CTX_FUNCTION; `policy` is a TlsPolicy. A stricter rule of the system's stays.
CURLcode apply_tls_policy(CURL* easy, void* ssl_context, void* policy);

}  // namespace lookout::rest::detail
