#include "apiserver/grpc/http2_session.h"

#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>
#include <utility>

#include "lookout/base/error.h"

namespace lookout::apiserver::grpc {
namespace {

// The window of the connection. Received bytes count as consumed immediately, so that it never closes
// and a slow reader blocks only its own stream. The windows of the streams limit the memory.
constexpr std::int32_t kConnectionWindow = 64 << 20;
constexpr std::size_t kFrameHead = 9;
// Flood protection: the limit for replies to pings and settings that the peer does not read.
constexpr std::size_t kMostAnswers = 256u << 10;

std::string_view text_of(const std::uint8_t* bytes, std::size_t size) {
  return {reinterpret_cast<const char*>(bytes), size};
}

/// The result points into `headers`.
std::vector<nghttp2_nv> fields_of(const Headers& headers) {
  const auto bytes = [](const std::string& text) {
    return reinterpret_cast<std::uint8_t*>(const_cast<char*>(text.data()));
  };
  std::vector<nghttp2_nv> out;
  out.reserve(headers.size());
  for (const auto& [name, value] : headers)
    out.push_back({bytes(name), bytes(value), name.size(), value.size(), NGHTTP2_NV_FLAG_NONE});
  return out;
}

StreamId stream_of(const nghttp2_frame& frame) { return static_cast<StreamId>(frame.hd.stream_id); }
std::int32_t number_of(StreamId stream) { return static_cast<std::int32_t>(stream); }

void check(int result) {
  if (result == NGHTTP2_ERR_NOMEM) throw std::bad_alloc();
}

}  // namespace

std::size_t Http2Session::Stream::take(std::uint8_t* out, std::size_t size) {
  const std::size_t part = std::min(size, left());
  std::memcpy(out, unsent.data() + sent, part);
  sent += part;
  // Sent bytes are erased occasionally, so that each byte is moved at most once.
  if (sent >= left()) unsent.erase(0, std::exchange(sent, 0));
  return part;
}

/// The callbacks of nghttp2, a C library: exceptions must not pass through it.
struct Http2Session::Hooks {
  template <class F>
  static int guarded(void* session, F f) noexcept {
    auto& self = *static_cast<Http2Session*>(session);
    try {
      return f(self);
    } catch (...) {
      self.thrown_ = std::current_exception();
      return NGHTTP2_ERR_CALLBACK_FAILURE;
    }
  }

  static int on_begin_headers(nghttp2_session*, const nghttp2_frame* frame, void* session) {
    return guarded(session, [&](Http2Session& self) {
      if (self.role_ == Role::kServer && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
        self.streams_[stream_of(*frame)];
      return 0;
    });
  }

  static int on_header(nghttp2_session*, const nghttp2_frame* frame, const std::uint8_t* name,
                       std::size_t name_size, const std::uint8_t* value, std::size_t value_size,
                       std::uint8_t, void* session) {
    return guarded(session, [&](Http2Session& self) -> int {
      const auto at = self.streams_.find(stream_of(*frame));
      if (at == self.streams_.end()) return 0;  // it has been reset
      Stream& stream = at->second;
      stream.header_bytes += name_size + value_size + 32;
      if (stream.header_bytes > kMaxHeaderBytes) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
      stream.headers.emplace_back(text_of(name, name_size), text_of(value, value_size));
      return 0;
    });
  }

  static int on_data(nghttp2_session* http2, std::uint8_t, std::int32_t id,
                     const std::uint8_t* bytes, std::size_t size, void* session) {
    return guarded(session, [&](Http2Session& self) {
      const auto stream = static_cast<StreamId>(id);
      if (self.streams_.contains(stream)) self.callbacks_.data(stream, text_of(bytes, size), false);
      return nghttp2_session_consume_connection(http2, size);
    });
  }

  static int on_frame(nghttp2_session*, const nghttp2_frame* frame, void* session) {
    return guarded(session, [&](Http2Session& self) {
      const bool acknowledges = (frame->hd.flags & NGHTTP2_FLAG_ACK) != 0;
      switch (frame->hd.type) {
        case NGHTTP2_SETTINGS:
          if (!acknowledges && !std::exchange(self.ready_, true) && self.callbacks_.ready)
            self.callbacks_.ready();
          break;
        case NGHTTP2_PING:
          if (acknowledges && self.callbacks_.pong) self.callbacks_.pong();
          break;
        case NGHTTP2_GOAWAY:
          if (self.callbacks_.going_away) {
            const auto text = text_of(frame->goaway.opaque_data,
                                      std::min(frame->goaway.opaque_data_len, std::size_t{200}));
            self.callbacks_.going_away(static_cast<StreamId>(frame->goaway.last_stream_id),
                                       static_cast<Http2Error>(frame->goaway.error_code),
                                       std::string(text));
          }
          break;
        case NGHTTP2_HEADERS:
        case NGHTTP2_DATA:
          return self.on_part_end(stream_of(*frame), frame->hd.type == NGHTTP2_HEADERS,
                                  (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0);
        default:  // RST_STREAM: nghttp2 calls on_close()
          break;
      }
      return 0;
    });
  }

  static int on_close(nghttp2_session*, std::int32_t id, std::uint32_t code, void* session) {
    return guarded(session, [&](Http2Session& self) {
      const auto stream = static_cast<StreamId>(id);
      const bool known = self.streams_.erase(stream) > 0;
      // A server's stream that both sides have ended is closed with NO_ERROR.
      if (known && (self.role_ == Role::kClient || code != NGHTTP2_NO_ERROR))
        self.callbacks_.reset(stream, static_cast<Http2Error>(code));
      return 0;
    });
  }

  static int on_sent(nghttp2_session*, const nghttp2_frame* frame, void* session) {
    return guarded(session, [&](Http2Session& self) {
      if ((frame->hd.type == NGHTTP2_PING || frame->hd.type == NGHTTP2_SETTINGS) &&
          (frame->hd.flags & NGHTTP2_FLAG_ACK) != 0)
        self.answers_ += kFrameHead + frame->hd.length;
      if (frame->hd.type == NGHTTP2_GOAWAY && frame->goaway.error_code != NGHTTP2_NO_ERROR) {
        self.error_ = self.complaint_;
        if (self.error_.empty()) self.error_ = nghttp2_http2_strerror(frame->goaway.error_code);
      }
      return 0;
    });
  }

  static int on_error(nghttp2_session*, int, const char* text, std::size_t size, void* session) {
    return guarded(session, [&](Http2Session& self) {
      self.complaint_.assign(text, size);
      return 0;
    });
  }

  static ssize_t read(nghttp2_session* http2, std::int32_t id, std::uint8_t* out, std::size_t size,
                      std::uint32_t* flags, nghttp2_data_source*, void* session) {
    return guarded(session, [&](Http2Session& self) -> int {
      const auto at = self.streams_.find(static_cast<StreamId>(id));
      if (at == self.streams_.end()) return NGHTTP2_ERR_DEFERRED;  // it is being reset
      Stream& stream = at->second;
      if (stream.left() == 0 && !stream.ends) return NGHTTP2_ERR_DEFERRED;
      const std::size_t part = stream.take(out, size);
      if (stream.left() != 0 || !stream.ends) return static_cast<int>(part);
      *flags |= NGHTTP2_DATA_FLAG_EOF;
      if (!stream.trailers.empty()) {
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        const auto fields = fields_of(stream.trailers);
        check(nghttp2_submit_trailer(http2, id, fields.data(), fields.size()));
      }
      return static_cast<int>(part);
    });
  }

  static nghttp2_session* make(Role role, Http2Session* self) {
    nghttp2_session_callbacks* hooks = nullptr;
    check(nghttp2_session_callbacks_new(&hooks));
    const std::unique_ptr<nghttp2_session_callbacks, void (*)(nghttp2_session_callbacks*)> owner(
        hooks, &nghttp2_session_callbacks_del);
    nghttp2_session_callbacks_set_on_begin_headers_callback(hooks, &on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(hooks, &on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(hooks, &on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(hooks, &on_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(hooks, &on_close);
    nghttp2_session_callbacks_set_on_frame_send_callback(hooks, &on_sent);
    nghttp2_session_callbacks_set_error_callback2(hooks, &on_error);
    nghttp2_option* options = nullptr;
    check(nghttp2_option_new(&options));
    const std::unique_ptr<nghttp2_option, void (*)(nghttp2_option*)> own(options,
                                                                         &nghttp2_option_del);
    nghttp2_option_set_no_auto_window_update(options, 1);
    nghttp2_session* out = nullptr;
    check(role == Role::kClient ? nghttp2_session_client_new2(&out, hooks, self, options)
                                : nghttp2_session_server_new2(&out, hooks, self, options));
    return out;
  }
};

Http2Session::Http2Session(Role role, Callbacks callbacks, std::uint32_t max_streams)
    : role_(role),
      callbacks_(std::move(callbacks)),
      session_(Hooks::make(role, this), &nghttp2_session_del) {
  std::vector<nghttp2_settings_entry> settings = {
      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, kStreamWindow}};
  if (role == Role::kClient) settings.push_back({NGHTTP2_SETTINGS_ENABLE_PUSH, 0});
  if (max_streams != 0) settings.push_back({NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, max_streams});
  check(
      nghttp2_submit_settings(session_.get(), NGHTTP2_FLAG_NONE, settings.data(), settings.size()));
  submit(nghttp2_session_set_local_window_size(session_.get(), NGHTTP2_FLAG_NONE, 0,
                                               kConnectionWindow));
}

Http2Session::~Http2Session() = default;

// --- receiving

bool Http2Session::feed(std::string_view bytes) {
  if (!error_.empty()) return false;
  feeding_ = true;
  const ssize_t taken = nghttp2_session_mem_recv(
      session_.get(), reinterpret_cast<const std::uint8_t*>(bytes.data()), bytes.size());
  feeding_ = false;
  rethrow();
  if (taken < 0) {
    complaint_ = nghttp2_strerror(static_cast<int>(taken));
    check(nghttp2_session_terminate_session(session_.get(), NGHTTP2_PROTOCOL_ERROR));
  }
  pump();
  if (answers_ > kMostAnswers && error_.empty()) {
    complaint_ = "too many frames that require a reply";
    submit(nghttp2_session_terminate_session(session_.get(), NGHTTP2_ENHANCE_YOUR_CALM));
  }
  return error_.empty();
}

/// A block of headers or trailers is complete, or a frame of a body, whose bytes on_data() has passed
/// on.
int Http2Session::on_part_end(StreamId id, bool is_headers, bool end) {
  const auto at = streams_.find(id);
  if (at == streams_.end()) return 0;  // it has been reset
  if (is_headers) {
    at->second.header_bytes = 0;
    callbacks_.headers(id, std::exchange(at->second.headers, {}), end);
  } else if (end) {
    callbacks_.data(id, {}, true);
  }
  const auto left = streams_.find(id);
  if (!end || role_ == Role::kServer || left == streams_.end()) return 0;
  const bool all_sent = left->second.ends && left->second.left() == 0;
  streams_.erase(left);
  // The response is complete, so the rest of the request need not be sent.
  return all_sent ? 0
                  : nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, number_of(id),
                                              NGHTTP2_NO_ERROR);
}

void Http2Session::rethrow() {
  if (thrown_) std::rethrow_exception(std::exchange(thrown_, nullptr));
}

// --- sending

/// Checks the result of an nghttp2 call, and appends queued frames to the output.
void Http2Session::submit(int result) {
  check(result);
  pump();
}

void Http2Session::pump() {
  if (feeding_) return;  // feed() does it
  for (;;) {
    const std::uint8_t* bytes = nullptr;
    const ssize_t size = nghttp2_session_mem_send(session_.get(), &bytes);
    rethrow();
    if (size <= 0) return check(static_cast<int>(size));
    output_.append(text_of(bytes, static_cast<std::size_t>(size)));
  }
}

std::string Http2Session::take_output() {
  answers_ = 0;
  return std::exchange(output_, {});
}

std::size_t Http2Session::unsent(StreamId stream) const {
  const auto at = streams_.find(stream);
  return at == streams_.end() ? 0 : at->second.left();
}

bool Http2Session::can_open() const {
  return nghttp2_session_check_request_allowed(session_.get()) != 0 &&
         streams_.size() < nghttp2_session_get_remote_settings(
                               session_.get(), NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
}

StreamId Http2Session::open(const Headers& headers) {
  const auto fields = fields_of(headers);
  const nghttp2_data_provider body{{}, &Hooks::read};
  const std::int32_t id =
      nghttp2_submit_request(session_.get(), nullptr, fields.data(), fields.size(), &body, nullptr);
  check(id);
  if (id < 0) throw Error(std::string("HTTP/2: no new stream: ") + nghttp2_strerror(id));
  streams_[static_cast<StreamId>(id)];
  pump();
  return static_cast<StreamId>(id);
}

void Http2Session::respond(StreamId id, const Headers& headers, bool end) {
  const auto at = streams_.find(id);
  if (at == streams_.end() || at->second.ends) return;
  Stream& stream = at->second;
  if (stream.responded) {
    stream.trailers = headers;
    stream.ends = end;
    nghttp2_session_resume_data(session_.get(), number_of(id));
    return pump();
  }
  stream.responded = true;
  stream.ends = end;
  const auto fields = fields_of(headers);
  const nghttp2_data_provider body{{}, &Hooks::read};
  submit(nghttp2_submit_response(session_.get(), number_of(id), fields.data(), fields.size(),
                                 end ? nullptr : &body));
}

void Http2Session::send(StreamId id, std::string_view bytes, bool end) {
  const auto at = streams_.find(id);
  if (at == streams_.end() || at->second.ends) return;
  at->second.unsent.append(bytes);
  at->second.ends = end;
  // An error means that nghttp2 is not waiting for this stream's bytes. It will request them.
  nghttp2_session_resume_data(session_.get(), number_of(id));
  pump();
}

void Http2Session::reset(StreamId id, Http2Error why) {
  if (streams_.erase(id) == 0) return;
  submit(nghttp2_submit_rst_stream(session_.get(), NGHTTP2_FLAG_NONE, number_of(id),
                                   static_cast<std::uint32_t>(why)));
}

void Http2Session::consumed(StreamId id, std::size_t bytes) {
  if (!streams_.contains(id)) return;
  submit(nghttp2_session_consume_stream(session_.get(), number_of(id), bytes));
}

void Http2Session::ping() {
  submit(nghttp2_submit_ping(session_.get(), NGHTTP2_FLAG_NONE, nullptr));
}

void Http2Session::go_away(StreamId last, Http2Error why, std::string_view text) {
  submit(nghttp2_submit_goaway(session_.get(), NGHTTP2_FLAG_NONE, number_of(last),
                               static_cast<std::uint32_t>(why),
                               reinterpret_cast<const std::uint8_t*>(text.data()), text.size()));
}

}  // namespace lookout::apiserver::grpc
