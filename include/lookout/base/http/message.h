// Requests and answers.
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

/// The identity of the other side, from its certificate.
struct PeerCertificate {
  bool valid = false;
  std::string common_name;
  std::vector<std::string> organizations;
};

/// The parameters of a URL, in order.
using Query = std::vector<std::pair<std::string, std::string>>;

struct Request {
  std::string method;
  /// As it came: path and query.
  std::string target;
  /// Without the query, decoded.
  std::string path;
  /// The parts of the path, each decoded.
  std::vector<std::string> segments;
  Query query;
  /// Names in lower case; of a repeated header the values are joined by commas.
  std::map<std::string, std::string, std::less<>> headers;
  /// The values, one by one, of headers that came more than once.
  std::map<std::string, std::vector<std::string>, std::less<>> repeated;
  std::string body;
  std::string client_address;
  std::optional<PeerCertificate> peer;
  /// Stopped when nobody waits for the answer any more: the client has closed its side, or the
  /// connection is cut off. Callbacks run on the connection's thread.
  std::stop_token gone = {};

  /// Empty if there is none.
  std::string_view header(std::string_view name) const;
  /// Every value of a header that may come more than once, in order.
  std::vector<std::string> header_values(std::string_view name) const;
  /// The first value of a parameter.
  std::optional<std::string_view> parameter(std::string_view name) const;
};

/// A piece of a body. Shared, since many clients may get the same bytes.
using Piece = std::shared_ptr<const std::string>;

/// A body that is made while it is sent.
class BodyStream {
 public:
  virtual ~BodyStream() = default;
  /// The next pieces, in place of what was there; false at the end.
  virtual Awaitable<bool> next(std::vector<Piece>& pieces) = 0;
  /// Makes a waiting or later next() come to an end soon. On the connection's thread.
  virtual void end() {}
  /// Whether the stream goes on until somebody ends it, so that its head has to go out first.
  virtual bool is_open_ended() const { return false; }
  /// The client does not take what it is sent, and is about to be cut off.
  virtual void on_slow_client() {}

  /// Set by the connection before the first next(): cuts the client off if it does not take what it
  /// is sent. May be called from any thread, also when the stream is gone.
  std::function<void()> cut_off;
};

struct Response {
  int status = 200;
  std::string content_type = "application/json";
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  /// If there is one, the body comes from it.
  std::unique_ptr<BodyStream> stream;

  static Response text(int status, std::string body) {
    Response response;
    response.status = status;
    response.content_type = "text/plain; charset=utf-8";
    response.body = std::move(body);
    return response;
  }
};

/// "%20" and the like decoded ('+' too in parameters); nothing if the text is malformed.
std::optional<std::string> percent_decode(std::string_view text, bool plus_is_space);

/// Takes a target apart into path, segments and query; false if it is malformed.
bool parse_target(std::string target, Request& request);

}  // namespace lookout::http
