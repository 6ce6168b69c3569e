// TLS rules that libcurl has no option for.
#pragma once

#include <curl/curl.h>

namespace lookout::rest::detail {

struct TlsPolicy {
  bool only_tls13 = false;  // else TLS 1.2 is accepted, too
      /// A certificate must have the server's name in its subject alternative names, as in Go (RFC 6125,
      /// 6.4.4). libcurl would also accept the common name.
  bool alternative_names = true;
};

/// For CURLOPT_SSL_CTX_FUNCTION; `policy` is a TlsPolicy. Keeps stricter system-wide rules.
CURLcode apply_tls_policy(CURL* easy, void* ssl_context, void* policy);

}  // namespace lookout::rest::detail
