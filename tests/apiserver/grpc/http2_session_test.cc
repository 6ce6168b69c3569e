// HTTP/2 from both sides, and protocol violations.
#include "apiserver/grpc/http2_session.h"

#include <algorithm>
#include <map>

#include "tests/support/matchers.h"

namespace lookout::apiserver::grpc {
namespace {

using Role = Http2Session::Role;

/// The headers of a request.
Headers request(const char* path, const Headers& more = {}) {
  Headers out = {{":method", "POST"}, {":scheme", "http"}, {":path", path}, {":authority", "x"}};
  out.insert(out.end(), more.begin(), more.end());
  return out;
}

/// A session and its callbacks' results.
struct Side {
  explicit Side(Role role, std::uint32_t max_streams = 0)
      : session(role, callbacks(), max_streams) {}

  Http2Session::Callbacks callbacks() {
    Http2Session::Callbacks out;
    out.ready = [this] { ready = true; };
    out.headers = [this](StreamId id, Headers list, bool end) {
      headers[id] = std::move(list);
      ended[id] = end;
    };
    out.data = [this](StreamId id, std::string_view bytes, bool end) {
      bodies[id].append(bytes);
      ended[id] = end;
    };
    out.reset = [this](StreamId id, Http2Error why) { resets[id] = why; };
    out.going_away = [this](StreamId last, Http2Error, const std::string&) { gone_after = last; };
    out.pong = [this] { ++pongs; };
    return out;
  }

  bool ready = false;
  std::map<StreamId, Headers> headers;
  std::map<StreamId, std::string> bodies;
  std::map<StreamId, bool> ended;
  std::map<StreamId, Http2Error> resets;
  std::optional<StreamId> gone_after;
  int pongs = 0;
  Http2Session session;
};

class Http2Test : public testing::TestWithParam<std::size_t> {
 protected:
  /// Exchanges bytes until neither side has output.
  void talk() {
    while (client_.session.has_output() || server_.session.has_output()) {
      carry(client_.session, server_.session);
      carry(server_.session, client_.session);
    }
  }
  void carry(Http2Session& from, Http2Session& to) const {
    const std::string bytes = from.take_output();
    for (std::size_t at = 0; at < bytes.size(); at += GetParam())
      ASSERT_TRUE(to.feed(std::string_view(bytes).substr(at, GetParam()))) << to.error();
  }
  /// Consumes a body of this size as it arrives.
  void read(Side& side, StreamId id, std::size_t size) {
    std::size_t consumed = 0;
    while (consumed < size) {
      talk();
      const std::size_t come = side.bodies[id].size();
      ASSERT_GT(come, consumed);
      side.session.consumed(id, come - consumed);
      consumed = come;
    }
  }

  Side client_{Role::kClient};
  Side server_{Role::kServer};
};

INSTANTIATE_TEST_SUITE_P(Steps, Http2Test, testing::Values(5, 1000, 1u << 20));

TEST_P(Http2Test, ExchangesARequestAndAResponse) {
  talk();
  EXPECT_TRUE(client_.ready);
  const StreamId id = client_.session.open(request("/a", {{"large", std::string(40000, 'h')}}));
  client_.session.send(id, "question", true);
  talk();
  EXPECT_EQ(find_header(server_.headers[id], ":path"), "/a");
  EXPECT_EQ(server_.bodies[id], "question");
  EXPECT_TRUE(server_.ended[id]);
  server_.session.respond(id, {{":status", "200"}}, false);
  server_.session.send(id, "answer", false);
  server_.session.respond(id, {{"grpc-status", "0"}}, true);
  talk();
  EXPECT_EQ(client_.bodies[id], "answer");
  EXPECT_EQ(find_header(client_.headers[id], "grpc-status"), "0");
  EXPECT_TRUE(client_.ended[id]);
  EXPECT_EQ(client_.session.streams(), 0u);
  EXPECT_EQ(server_.session.streams(), 0u);
}

TEST_P(Http2Test, AnUnreadStreamFillsItsWindowAndOthersContinue) {
  talk();
  const StreamId slow = client_.session.open(request("/slow"));
  const StreamId fast = client_.session.open(request("/fast"));
  talk();
  const std::string large(2 * Http2Session::kStreamWindow, 'x');
  for (const StreamId id : {slow, fast}) server_.session.respond(id, {{":status", "200"}}, false);
  server_.session.send(slow, large, false);
  talk();
  EXPECT_EQ(client_.bodies[slow].size(), Http2Session::kStreamWindow);
  EXPECT_EQ(server_.session.unsent(slow), large.size() - Http2Session::kStreamWindow);
  server_.session.send(fast, large, false);
  read(client_, fast, large.size());
  client_.session.consumed(slow, Http2Session::kStreamWindow);
  talk();
  EXPECT_EQ(client_.bodies[slow].size(), large.size());
}

TEST_P(Http2Test, ARequestThatIsLargerThanAllWindowsArrives) {
  talk();
  const std::string large(3 * Http2Session::kStreamWindow, 'q');
  const StreamId id = client_.session.open(request("/"));
  client_.session.send(id, large, true);
  read(server_, id, large.size());
  EXPECT_TRUE(server_.ended[id]);
}

TEST_P(Http2Test, HandlesResetsPingsAndGoaways) {
  talk();
  const StreamId first = client_.session.open(request("/1"));
  const StreamId second = client_.session.open(request("/2"));
  client_.session.ping();
  talk();
  EXPECT_EQ(client_.pongs, 1);
  client_.session.reset(first, Http2Error::kCancel);
  // Frames that cross the reset are ignored.
  server_.session.respond(first, {{":status", "200"}}, false);
  server_.session.send(first, "late", false);
  talk();
  EXPECT_EQ(server_.resets.at(first), Http2Error::kCancel);
  EXPECT_FALSE(client_.bodies.contains(first));
  server_.session.reset(second, Http2Error::kRefusedStream);
  server_.session.go_away(first);
  talk();
  EXPECT_EQ(client_.resets.at(second), Http2Error::kRefusedStream);
  EXPECT_EQ(client_.gone_after, first);
  EXPECT_FALSE(client_.session.can_open());
}

TEST_P(Http2Test, LimitsConcurrentStreams) {
  Side server(Role::kServer, 1);
  carry(server.session, client_.session);
  EXPECT_TRUE(client_.session.can_open());
  client_.session.open(request("/"));
  EXPECT_FALSE(client_.session.can_open());
}

// --- input that a client rejects

std::string frame(unsigned type, unsigned flags, unsigned stream, std::string_view payload) {
  std::string out;
  for (const unsigned shift : {16u, 8u, 0u})
    out.push_back(static_cast<char>(payload.size() >> shift & 0xff));
  out.push_back(static_cast<char>(type));
  out.push_back(static_cast<char>(flags));
  for (const unsigned shift : {24u, 16u, 8u, 0u})
    out.push_back(static_cast<char>(stream >> shift & 0xff));
  return out.append(payload);
}

struct Hostile {
  const char* name;
  std::string bytes;
  int code;  // of RFC 9113, section 7
};
void PrintTo(const Hostile& hostile, std::ostream* out) { *out << hostile.name; }

class HostileHttp2Test : public testing::TestWithParam<Hostile> {};

/// The type of the last frame, and its second number: the code of a GOAWAY.
std::pair<int, int> last_frame(const std::string& bytes) {
  const auto at = [&](std::size_t i) {
    return static_cast<int>(static_cast<unsigned char>(bytes[i]));
  };
  std::size_t begin = 0;
  for (;;) {
    const auto size =
        static_cast<std::size_t>(at(begin) << 16 | at(begin + 1) << 8 | at(begin + 2));
    if (begin + 9 + size >= bytes.size()) return {at(begin + 3), size < 8 ? 0 : at(begin + 16)};
    begin += 9 + size;
  }
}

TEST_P(HostileHttp2Test, EndsTheConnection) {
  Side client(Role::kClient);
  ASSERT_TRUE(client.session.feed(frame(4, 0, 0, "")));
  client.session.open(request("/"));  // 1
  client.session.take_output();
  std::string all;
  while (client.session.feed(GetParam().bytes) && all.size() < (100u << 20))
    all += GetParam().bytes;
  EXPECT_NE(client.session.error(), "");
  const auto [type, code] = last_frame(client.session.take_output());
  EXPECT_EQ(type, 7) << "it says goodbye";
  EXPECT_EQ(code, GetParam().code) << client.session.error();
  EXPECT_FALSE(client.session.feed("x"));
}

std::string zeros(std::size_t n) { return std::string(n, '\0'); }

INSTANTIATE_TEST_SUITE_P(
    Frames, HostileHttp2Test,
    testing::Values(
        Hostile{"LargeFrame", frame(0, 0, 1, zeros(16385)), 6},
        Hostile{"DataWithoutAStream", frame(0, 0, 0, "x"), 1},
        Hostile{"DataOfNoStream", frame(0, 0, 3, "x"), 1},
        Hostile{"DataBeforeHeaders", frame(0, 0, 1, zeros(16384)), 1},
        Hostile{"Padding", frame(0, 8, 1, "\x05xx"), 1},
        Hostile{"PaddingOfNothing", frame(0, 8, 1, ""), 1},
        Hostile{"HeadersOfNoStream", frame(1, 4, 3, "\x88"), 1},
        Hostile{"BadHeaders", frame(1, 4, 1, "\x80"), 9},
        Hostile{"InterruptedHeaders", frame(1, 0, 1, "\x88") + frame(6, 0, 0, zeros(8)), 1},
        Hostile{"HeadersWithoutEnd", frame(1, 0, 1, "\x88") + frame(9, 0, 1, ""), 1},
        Hostile{"ContinuationOfNothing", frame(9, 4, 1, "\x88"), 1},
        Hostile{"Push", frame(5, 4, 1, zeros(4)), 1},
        Hostile{"HalfASetting", frame(4, 0, 0, zeros(5)), 6},
        Hostile{"LargeWindow", frame(4, 0, 0, std::string("\0\4\xff\xff\xff\xff", 6)), 3},
        Hostile{"SmallFrames", frame(4, 0, 0, std::string("\0\5\0\0\0\1", 6)), 1},
        Hostile{"Settings", frame(4, 0, 0, ""), 11}, Hostile{"Pings", frame(6, 0, 0, zeros(8)), 11},
        Hostile{"ShortPing", frame(6, 0, 0, zeros(7)), 6},
        Hostile{"ResetOfNothing", frame(3, 0, 5, zeros(4)), 1},
        Hostile{"EmptyWindow", frame(8, 0, 0, zeros(4)), 1},
        Hostile{"ShortGoodbye", frame(7, 0, 0, zeros(7)), 6}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(Http2SessionTest, AnotherProtocolIsReportedAtOnce) {
  Side client(Role::kClient);
  EXPECT_FALSE(client.session.feed("HTTP/1.1 400 Bad Request\r\n"));
  EXPECT_THAT(client.session.error(), HasSubstr("SETTINGS"));
  Side server(Role::kServer);
  EXPECT_FALSE(server.session.feed("GET / HTTP/1.1\r\n"));
}

}  // namespace
}  // namespace lookout::apiserver::grpc
