#include "rest/refused_stream.h"

#include <openssl/ssl.h>
#include <sys/socket.h>

#include <cerrno>
#include <charconv>
#include <string_view>

namespace lookout::rest::detail {
namespace {

bool at_end(curl_socket_t fd) {
  char byte = 0;
  const ssize_t got = recv(fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
  return got == 0 || (got < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

/// The number after `sign`, if the text contains `sign`.
std::optional<std::uint32_t> number_behind(std::string_view sign, std::string_view text) {
  const std::size_t at = text.find(sign);
  if (at == std::string_view::npos) return std::nullopt;
  text.remove_prefix(at + sign.size());
  std::uint32_t number = 0;
  if (std::from_chars(text.data(), text.data() + text.size(), number).ec != std::errc{})
    return std::nullopt;
  return number;
}

}  // namespace

std::optional<std::uint32_t> StreamNotes::note(std::string_view text) {
  if (const auto stream = number_behind("Using Stream ID: ", text)) {
    stream_ = *stream;
    last_begun_.reset();
  } else if (text.find("GOAWAY") != std::string_view::npos) {
    return number_behind("last_stream=", text);
  }
  return std::nullopt;
}

bool was_refused(CURL* easy, const char* error, curl_socket_t fd) {
  if (*error != '\0' || fd == CURL_SOCKET_BAD) return false;
  curl_tlssessioninfo* session = nullptr;
  if (curl_easy_getinfo(easy, CURLINFO_TLS_SSL_PTR, &session) != CURLE_OK || session == nullptr ||
      session->backend != CURLSSLBACKEND_OPENSSL || session->internals == nullptr)
    return false;
  const auto* ssl = static_cast<const SSL*>(session->internals);
  const unsigned char* protocol = nullptr;
  unsigned size = 0;
  SSL_get0_alpn_selected(ssl, &protocol, &size);
  const bool http2 = std::string_view(reinterpret_cast<const char*>(protocol), size) == "h2";
  return http2 && SSL_get_shutdown(ssl) == 0 && !at_end(fd);
}

}  // namespace lookout::rest::detail
