// HTTP requests and responses.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lookout/base/event_loop.h"

namespace lookout::http {

/// The identity in the client's certificate.
struct PeerCertificate {
  bool valid = false;
  std::string common_name;
  std::vector<std::string> organizations;
  /// The SHA-256 digest of the certificate, in hexadecimal.
  std::string fingerprint = {};
};

/// The parameters of a URL, in order.
using Query = std::vector<std::pair<std::string, std::string>>;

struct Request {
  std::string method;
  /// The raw path and query.
  std::string target;
  /// The decoded path, without the query.
  std::string path;
  /// The segments of the path, each decoded.
  std::vector<std::string> segments;
  Query query;
  /// Names in lower case; the values of a repeated header are joined by commas.
  std::map<std::string, std::string, std::less<>> headers;
  /// The separate values of headers that occurred more than once.
  std::map<std::string, std::vector<std::string>, std::less<>> repeated;
  std::string body;
  std::string client_address;
  std::optional<PeerCertificate> peer;
  /// Requested when the answer is no longer needed: the client has closed its side, or the server
  /// has closed the connection. Callbacks run on the connection's thread.
  std::stop_token gone = {};

  /// Empty if the header is absent.
  std::string_view header(std::string_view name) const;
  /// Every value of a header that may be repeated, in order.
  std::vector<std::string> header_values(std::string_view name) const;
  /// The first value of a parameter.
  std::optional<std::string_view> parameter(std::string_view name) const;
};

/// A piece of a body. Shared, because many clients may receive the same bytes.
using Piece = std::shared_ptr<const std::string>;

/// A body that is generated while it is sent.
class BodyStream {
 public:
  virtual ~BodyStream() = default;
  /// Replaces `pieces` with the next pieces; returns false at the end.
  virtual Awaitable<bool> next(std::vector<Piece>& pieces) = 0;
  /// Ends a waiting or later next() soon. Called on the connection's thread.
  virtual void end() {}
  /// True if the stream continues until it is ended. Its head is then sent immediately.
  virtual bool is_open_ended() const { return false; }
  /// Called before the connection is closed because the client does not read.
  virtual void on_slow_client() {}

  /// Closes the connection if the client does not read. Set by the connection before the first
  /// next(). Safe to call from any thread, even after the stream is destroyed.
  std::function<void()> cut_off;
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  /// The source of the body, if set.
  std::unique_ptr<BodyStream> stream;

  static Response text(int status, std::string body) {
    Response response;
    response.status = status;
    response.content_type = "text/plain; charset=utf-8";
    response.body = std::move(body);
    return response;
  }
};

/// Decodes "%20" and the like (and '+' in parameters); empty if the text is malformed.
std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space);

/// Splits a target into path, segments and query; returns false if it is malformed.
bool parse_target(std::string target, Request& request);

}  // namespace lookout::http
