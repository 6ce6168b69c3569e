// Http2Session: one side of an HTTP/2 connection (RFC 9113), without I/O.
#pragma once

#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "apiserver/grpc/headers.h"

struct nghttp2_session;

namespace lookout::apiserver::grpc {

using StreamId = std::uint32_t;

/// The error codes of RFC 9113, section 7, that are used here.
enum class Http2Error : std::uint32_t {
  kNone = 0,
  kProtocol = 1,
  kInternal = 2,
  kRefusedStream = 7,
  kCancel = 8,
  kEnhanceYourCalm = 11
};

/// A session of nghttp2. The owner passes received bytes to feed() and sends the bytes that
/// take_output() returns. A stream's reader opens its window with consumed(). send() never blocks:
/// bytes beyond the peer's window are kept. Not thread-safe; callbacks run in feed().
class Http2Session {
 public:
  /// kServer is for tests.
  enum class Role { kClient, kServer };

  struct Callbacks {
    /// The peer's first settings have arrived.
    std::function<void()> ready = {};
    /// Headers or trailers have arrived; `end`: the stream ends with them.
    std::function<void(StreamId, Headers, bool end)> headers = {};
    /// A part of a body has arrived; consumed() opens the window. It may be empty at the end.
    std::function<void(StreamId, std::string_view, bool end)> data = {};
    /// The stream was reset, or the connection ended it. No other callback follows for it.
    std::function<void(StreamId, Http2Error)> reset = {};
    /// The other side ends the connection. It has not processed streams after `last`.
    std::function<void(StreamId last, Http2Error why, std::string text)> going_away = {};
    std::function<void()> pong = {};
  };

  /// A stream's window: the maximum number of unconsumed bytes.
  static constexpr std::uint32_t kStreamWindow = 512u << 10;
  /// The limit of a block of headers: names and values, and 32 bytes for each header. A stream with
  /// more is reset.
  static constexpr std::size_t kMaxHeaderBytes = 128u << 10;

  /// `max_streams`: how many streams the other side may have open; 0: any number.
  Http2Session(Role role, Callbacks callbacks, std::uint32_t max_streams = 0);
  ~Http2Session();
  Http2Session(const Http2Session&) = delete;
  Http2Session& operator=(const Http2Session&) = delete;

  /// False if the peer violates the protocol; then error() is set, and the output is a GOAWAY.
  bool feed(std::string_view bytes);
  const std::string& error() const { return error_; }

  /// False within a callback: output is produced when feed() ends.
  bool has_output() const { return !output_.empty(); }
  std::string take_output();

  /// Starts a stream. Only if can_open(). Throws lookout::Error if nghttp2 fails.
  StreamId open(const Headers& headers);
  bool can_open() const;
  /// Sends headers or trailers of a response.
  void respond(StreamId stream, const Headers& headers, bool end);
  /// Sends as much as the peer's window allows, and the rest later. `end`: these are the stream's last
  /// bytes.
  void send(StreamId stream, std::string_view bytes, bool end);
  /// Resets a stream. No callbacks follow for it.
  void reset(StreamId stream, Http2Error why);
  /// The owner has consumed this many bytes of the stream's body.
  void consumed(StreamId stream, std::size_t bytes);
  void ping();
  /// Sends a GOAWAY: streams after `last` have not been processed.
  void go_away(StreamId last, Http2Error why = Http2Error::kNone, std::string_view text = {});

  std::size_t streams() const { return streams_.size(); }
  /// The bytes that wait until the other side has room.
  std::size_t unsent(StreamId stream) const;

 private:
  struct Stream {
    Headers headers = {};  // of the block that is being received
    std::size_t header_bytes = 0;
    std::string unsent = {};  // from `sent` on
    std::size_t sent = 0;
    bool ends = false;       // after `unsent`
    bool responded = false;  // the server has sent its headers
    Headers trailers = {};   // to be sent after `unsent`

    std::size_t left() const { return unsent.size() - sent; }
    std::size_t take(std::uint8_t* out, std::size_t size);
  };
  struct Hooks;  // nghttp2's callbacks
  friend struct Hooks;

  int on_part_end(StreamId id, bool is_headers, bool end);
  void rethrow();
  void submit(int result);
  void pump();

  const Role role_;
  const Callbacks callbacks_;
  const std::unique_ptr<nghttp2_session, void (*)(nghttp2_session*)> session_;
  std::unordered_map<StreamId, Stream> streams_;
  bool feeding_ = false;
  bool ready_ = false;
  std::exception_ptr thrown_;  // by a callback
  std::string complaint_;      // nghttp2's last error message
  std::string error_;
  std::string output_;
  std::size_t answers_ = 0;  // bytes of output_ that reply to the peer's frames
};

}  // namespace lookout::apiserver::grpc
