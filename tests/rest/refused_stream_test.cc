// Writes on streams that the server refuses.
#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/post.hpp>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tests/rest/client_testing.h"
#include "tests/rest/http2_peer.h"
#include "tests/support/matchers.h"

namespace lookout::test {
namespace {

using k8s::core::v1::Pod;
using rest::Client;

/// Large enough for several frames.
api::Object large_pod() {
  return api::Object::parse(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"web",)"
                            R"("annotations":{"x":")" +
                            std::string(40'000, 'x') + "\"}}}");
}

/// The connection is new, or has carried another request.
class RefusedStreamTest : public testing::TestWithParam<bool> {
 protected:
  static void SetUpTestSuite() { authority_ = std::make_unique<CertificateAuthority>(); }
  static void TearDownTestSuite() { authority_.reset(); }

  /// `first` handles the first request with a body; the others are answered.
  void serve(std::function<void(Http2Peer::Connection&, const Http2Peer::Request&)> first) {
    peer_ = std::make_unique<Http2Peer>(
        authority_->issue_local(),
        [this, first = std::move(first)](Http2Peer::Connection& c, const Http2Peer::Request& r) {
          bool answered = r.body.empty();
          {
            const std::lock_guard lock(mutex_);
            if (!answered) bodies_.push_back(r.body);
            answered |= bodies_.size() > 1;
          }
          answered ? c.respond(r.stream, pod_json("web")) : first(c, r);
        });
    rest::Config config;
    config.server = "https://127.0.0.1:" + std::to_string(peer_->port());
    config.ca_data = authority_->certificate();
    client_.emplace(config);
    if (GetParam()) client_->resource<Pod>("shop").get("web");
  }
  void create() { client_->resource<Pod>("shop").dynamic().create(large_pod()); }
  std::vector<std::string> bodies() {
    const std::lock_guard lock(mutex_);
    return bodies_;
  }

  static std::unique_ptr<CertificateAuthority> authority_;
  std::mutex mutex_;
  std::vector<std::string> bodies_;  // guarded by mutex_
  std::unique_ptr<Http2Peer> peer_;
  std::optional<Client> client_;
};
std::unique_ptr<CertificateAuthority> RefusedStreamTest::authority_;

INSTANTIATE_TEST_SUITE_P(, RefusedStreamTest, testing::Bool(), [](const auto& test) {
  return test.param ? "OnAKeptConnection" : "OnANewConnection";
});

TEST_P(RefusedStreamTest, ARefusedStreamIsRetried) {
  serve([](Http2Peer::Connection& c, const Http2Peer::Request& r) {
    c.reset(r.stream, Http2Peer::kRefusedStream);
  });
  EXPECT_NO_THROW(create());
  const std::string body = large_pod().to_json();
  EXPECT_THAT(bodies(), ElementsAre(body, body)) << "whole both times";
}

TEST_P(RefusedStreamTest, AStreamBehindGoawayIsRetried) {
  serve([](Http2Peer::Connection& c, const Http2Peer::Request& r) {
    c.go_away(r.stream > 2 ? r.stream - 2 : 0);
  });
  EXPECT_NO_THROW(create());
  EXPECT_THAT(bodies(), SizeIs(2));
}

TEST_P(RefusedStreamTest, AFailedStreamIsNotRetried) {
  serve([](Http2Peer::Connection& c, const Http2Peer::Request& r) {
    c.reset(r.stream, Http2Peer::kInternalError);
  });
  EXPECT_EQ(kind_thrown([&] { create(); }), Kind::kBroken);
  EXPECT_THAT(bodies(), SizeIs(1));
}

TEST_P(RefusedStreamTest, AStreamOfABrokenConnectionIsNotRetried) {
  serve([](Http2Peer::Connection& c, const Http2Peer::Request&) { c.close(); });
  EXPECT_EQ(kind_thrown([&] { create(); }), Kind::kBroken);
  EXPECT_THAT(bodies(), SizeIs(1)) << "nobody knows what the server has done";
}

TEST_P(RefusedStreamTest, AStreamBeforeGoawayIsNotRetried) {
  serve([](Http2Peer::Connection& c, const Http2Peer::Request& r) {
    c.go_away(r.stream);
    c.close();
  });
  EXPECT_EQ(kind_thrown([&] { create(); }), Kind::kBroken);
  EXPECT_THAT(bodies(), SizeIs(1));
}

/// Several streams share a connection, and any of them may be the one that reads the GOAWAY.
class GoAwayTest : public testing::Test {
 protected:
  using Connection = Http2Peer::Connection;
  using Request = Http2Peer::Request;

  /// `script` handles the requests of the first connection; later ones are answered.
  void serve(const std::function<void(Connection&, const Request&)>& script) {
    const auto authority = CertificateAuthority();
    peer_ = std::make_unique<Http2Peer>(
        authority.issue_local(), [this, script](Connection& c, const Request& r) {
          {
            const std::lock_guard lock(mutex_);
            ++(r.body.empty() ? reads_ : writes_);
          }
          r.connection == 0 ? script(c, r) : c.respond(r.stream, pod_json("web"));
        });
    rest::Config config;
    config.server = "https://127.0.0.1:" + std::to_string(peer_->port());
    config.ca_data = authority.certificate();
    client_.emplace(config, loop_);
  }
  /// Sends GOAWAY and closes the connection, so that the client notices both at once.
  void go(Connection& c, std::uint32_t last_stream) {
    const auto held = std::make_shared<Gate>();
    const auto gone = std::make_shared<Gate>();
    boost::asio::post(loop_->context(), [held, gone] {
      held->open();
      EXPECT_TRUE(gone->wait());
    });
    EXPECT_TRUE(held->wait());
    c.go_away(last_stream);
    c.close();
    gone->open();
  }
  auto pods() { return client_->resource<Pod>("shop"); }
  int writes() {
    const std::lock_guard lock(mutex_);
    return writes_;
  }
  int reads() {
    const std::lock_guard lock(mutex_);
    return reads_;
  }

  const std::shared_ptr<EventLoop> loop_ = std::make_shared<EventLoop>(1);
  std::mutex mutex_;
  int reads_ = 0;  // guarded by mutex_, like the following members
  int writes_ = 0;
  std::unique_ptr<Http2Peer> peer_;
  std::optional<Client> client_;
};

TEST_F(GoAwayTest, AWriteBehindItIsRetriedWhicheverStreamReadsIt) {
  constexpr int kReads = 8;
  Gate all_there;
  serve([&](Connection& c, const Request& r) {
    if (r.number == 0) {
      c.respond(r.stream, pod_json("web"));  // the connection is established
    } else if (r.body.empty()) {
      c.begin(r.stream, "{");  // these responses are incomplete
      if (r.number == kReads) all_there.open();
    } else {
      go(c, r.stream - 2);
    }
  });
  pods().get("web");
  std::vector<std::jthread> readers;
  readers.reserve(kReads);
  for (int i = 0; i < kReads; ++i) {
    readers.emplace_back([this] {
      EXPECT_EQ(kind_thrown([&] { pods().get("web"); }), Kind::kBroken) << "its head had come";
    });
  }
  ASSERT_TRUE(all_there.wait());
  EXPECT_NO_THROW(pods().dynamic().create(large_pod()));
  EXPECT_EQ(writes(), 2);
}

TEST_F(GoAwayTest, OnlyTheWriteBehindItIsRetried) {
  serve([&](Connection& c, const Request& r) {
    if (r.number == 0) c.respond(r.stream, pod_json("web"));
    if (r.number != 2) return;
    go(c, r.stream - 2);
  });
  pods().get("web");
  std::atomic<int> made{0};
  std::atomic<int> broken{0};
  {
    std::vector<std::jthread> writers;
    writers.reserve(2);
    for (int i = 0; i < 2; ++i) {
      writers.emplace_back([&] {
        try {
          pods().dynamic().create(api::Object::parse(pod_json("web")));
          ++made;
        } catch (const rest::TransportError& e) {
          EXPECT_EQ(e.kind(), Kind::kBroken);
          ++broken;
        }
      });
    }
  }
  EXPECT_EQ(made, 1);
  EXPECT_EQ(broken, 1) << "nobody knows what the server has done with the first";
  EXPECT_EQ(writes(), 3);
}

TEST_F(GoAwayTest, ReadsBehindItAreRetried) {
  constexpr int kReads = 8;
  serve([&](Connection& c, const Request& r) {
    if (r.number == 0) c.respond(r.stream, pod_json("web"));
    if (r.number != kReads) return;
    go(c, 1);
  });
  pods().get("web");
  {
    std::vector<std::jthread> readers;
    readers.reserve(kReads);
    for (int i = 0; i < kReads; ++i)
      readers.emplace_back([this] { EXPECT_NO_THROW(pods().get("web")); });
  }
  EXPECT_EQ(reads(), 1 + 2 * kReads);
}

TEST_F(GoAwayTest, TheLastGoawayCounts) {
  serve([&](Connection& c, const Request&) {
    c.go_away(0x7fffffff);  // announces the end of new streams: the server handles earlier ones
    go(c, 0);
  });
  EXPECT_NO_THROW(pods().dynamic().create(large_pod()));
  EXPECT_EQ(writes(), 2);
}

}  // namespace
}  // namespace lookout::test
