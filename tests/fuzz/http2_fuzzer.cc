// HTTP/2 frames of a peer: for any input, in any pieces, a client keeps its limits.
#include <string>

#include "apiserver/grpc/http2_session.h"
#include "tests/fuzz/fuzzing.h"

using namespace lookout;
using namespace lookout::apiserver::grpc;

namespace {

template <class Feed>
void talk(const Feed& feed) {
  std::size_t received = 0;
  std::size_t allowed = 0;
  Http2Session::Callbacks callbacks;
  callbacks.headers = [&](StreamId, const Headers& headers, bool) {
    std::size_t bytes = 0;
    for (const auto& [name, value] : headers) bytes += name.size() + value.size() + 32;
    fuzz::require(bytes <= Http2Session::kMaxHeaderBytes);
  };
  callbacks.data = [&](StreamId, std::string_view bytes, bool) {
    received += bytes.size();
    fuzz::require(received <= allowed);
  };
  callbacks.reset = [](StreamId, Http2Error) {};
  Http2Session session(Http2Session::Role::kClient, std::move(callbacks));
  // Streams that wait for responses; one has more to send than its window allows.
  for (int i = 0; i < 3; ++i) {
    const StreamId id = session.open(
        {{":method", "POST"}, {":scheme", "http"}, {":path", "/"}, {":authority", "x"}});
    session.send(id, std::string(i == 0 ? 100000 : 10, 'x'), i != 2);
    allowed += Http2Session::kStreamWindow;
  }
  feed(session);
  fuzz::require(session.streams() <= 3);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = fuzz::text_of(data, size);
  talk([&](Http2Session& session) { session.feed(bytes); });
  talk([&](Http2Session& session) {
    fuzz::feed_in_pieces(bytes, [&](std::string_view piece) { session.feed(piece); });
  });
  return 0;
}
