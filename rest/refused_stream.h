// Whether a request that changes something may be sent again.
#pragma once

#include <curl/curl.h>

#include <cstdint>
#include <optional>
#include <string_view>

namespace lookout::rest::detail {

/// Whether libcurl, which asks for the body of a request again, does so because the server refused
/// the stream (REFUSED_STREAM, or a GOAWAY that says that it will not come to it): then it has done
/// nothing with it (RFC 9113, 8.7). The other reason is a connection that broke before the answer,
/// and nobody knows what the server has done.
///
/// libcurl does not say which it is. But a connection that breaks shows it: an error was noted, TLS
/// was shut down, or the socket is at its end. If none of that is so, the stream was refused.
/// `error` is what libcurl has noted for the transfer, `fd` its socket.
bool was_refused(CURL* easy, const char* error, curl_socket_t fd);

/// The state of a transfer's HTTP/2 stream, which libcurl reports in its verbose messages only.
///
/// libcurl tells of a GOAWAY to one transfer only: the one that happens to read. The owner passes
/// it to all transfers of the connection.
class StreamNotes {
 public:
  /// The last stream that the server processes, if the text tells of a GOAWAY.
  std::optional<std::uint32_t> note(std::string_view text);
  /// A GOAWAY has come over the stream's connection.
  void gone_away(std::uint32_t last_begun) { last_begun_ = last_begun; }
  /// Whether a GOAWAY has said that the server will not come to the stream (RFC 9113, 6.8).
  bool never_begun() const { return stream_ > last_begun_.value_or(stream_); }

 private:
  std::uint32_t stream_ = 0;
  std::optional<std::uint32_t> last_begun_;
};

}  // namespace lookout::rest::detail
