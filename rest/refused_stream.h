// Whether a write may be repeated.
#pragma once

#include <curl/curl.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace lookout::rest::detail {

/// libcurl rewinds a request's body to repeat it for one of two reasons. Either the server refused
/// the stream (REFUSED_STREAM, or a GOAWAY with a lower stream number), so it has not processed the
/// request (RFC 9113, 8.7): then this returns true. Or the connection broke before the response, so
/// the server may have processed it.
///
/// libcurl does not report the reason, but a broken connection is visible: libcurl has recorded an
/// error, TLS was shut down, or the socket is at its end. `error` is libcurl's error text of the
/// transfer, `fd` its socket.
bool was_refused(CURL* easy, const char* error, curl_socket_t fd);

/// The state of a transfer's HTTP/2 stream, which libcurl reports only in its verbose messages.
///
/// libcurl reports a GOAWAY only to the transfer that happens to read. The owner passes it to all
/// transfers of the connection.
class StreamNotes {
 public:
  /// The last stream that the server processes, if the text reports a GOAWAY.
  std::optional<std::uint32_t> note(std::string_view text);
  /// A GOAWAY has arrived on the stream's connection.
  void gone_away(std::uint32_t last_begun) { last_begun_ = last_begun; }
  /// Whether a GOAWAY means that the server will not process the stream (RFC 9113, 6.8).
  bool never_begun() const { return stream_ > last_begun_.value_or(stream_); }

 private:
  std::uint32_t stream_ = 0;
  std::optional<std::uint32_t> last_begun_;
};

}  // namespace lookout::rest::detail
