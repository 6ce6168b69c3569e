#include "rest/curl_errors.h"

#include <cerrno>

namespace lookout::rest::detail {
namespace {

using Kind = TransportError::Kind;

/// The peer's TLS alert (RFC 8446, 6.2). With TLS 1.3, it arrives after this side has completed the
/// handshake.
bool is_tls_alert(std::string_view text) {
  return text.find("SSL routines") != std::string_view::npos &&
         text.find(" alert ") != std::string_view::npos;
}

/// Whether the peer closed the connection during the handshake: a server or proxy that is starting
/// or stopping, not one with the wrong identity.
bool broke_in_handshake(std::string_view text) {
  for (const char* sign : {"SSL_ERROR_SYSCALL", "reset by peer", "Broken pipe", "unexpected eof"}) {
    if (text.find(sign) != std::string_view::npos) return true;
  }
  return false;
}

}  // namespace

TransportError::Kind kind_of(CURLcode code, CURL* easy, std::string_view text) {
  long proxy_answer = 0;
  curl_easy_getinfo(easy, CURLINFO_HTTP_CONNECTCODE, &proxy_answer);
  if (code == CURLE_RECV_ERROR && proxy_answer >= 300) return Kind::kUnreachable;
  if ((code == CURLE_RECV_ERROR || code == CURLE_SEND_ERROR) && is_tls_alert(text))
    return Kind::kTls;
  if (code == CURLE_RECV_ERROR && text.starts_with("Too large response headers"))
    return Kind::kProtocol;
  switch (code) {
    case CURLE_COULDNT_CONNECT: {
      long os_error = 0;
      curl_easy_getinfo(easy, CURLINFO_OS_ERRNO, &os_error);
      return os_error == ECONNREFUSED ? Kind::kRefused : Kind::kUnreachable;
    }
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
      return Kind::kUnreachable;
    case CURLE_OPERATION_TIMEDOUT: {
      // (The connect times are also 0 for a reused connection.)
      curl_off_t connected = 0;
      curl_easy_getinfo(easy, CURLINFO_PRETRANSFER_TIME_T, &connected);
      return connected == 0 ? Kind::kUnreachable : Kind::kTimeout;
    }
    case CURLE_SSL_CONNECT_ERROR:
      return broke_in_handshake(text) ? Kind::kBroken : Kind::kTls;
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_CERTPROBLEM:
    case CURLE_SSL_CIPHER:
    case CURLE_SSL_CACERT_BADFILE:
    case CURLE_SSL_ISSUER_ERROR:
    case CURLE_SSL_INVALIDCERTSTATUS:
      return Kind::kTls;
    case CURLE_RECV_ERROR:
    case CURLE_SEND_ERROR:
    case CURLE_SEND_FAIL_REWIND:
    case CURLE_GOT_NOTHING:
    case CURLE_PARTIAL_FILE:
    case CURLE_HTTP2:
    case CURLE_HTTP2_STREAM:
      return Kind::kBroken;
    case CURLE_WEIRD_SERVER_REPLY:
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_BAD_CONTENT_ENCODING:
      return Kind::kProtocol;
    default:
      return Kind::kOther;
  }
}

}  // namespace lookout::rest::detail
