// Lists as streams (KV.RangeStream), from a scripted etcd.
#include "apiserver/storage/etcd3/range_stream.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include "apiserver/grpc/call.h"
#include "lookout/api/status.h"
#include "lookout/apiserver/storage/etcd3.h"
#include "tests/apiserver/grpc/grpc_server.h"
#include "tests/apiserver/storage/etcd3/etcd_answers.h"
#include "tests/apiserver/storage/etcd3/etcd_store_fixture.h"
#include "tests/support/eventually.h"
#include "tests/support/matchers.h"

namespace lookout::apiserver::storage::etcd3 {
namespace {

using test::eventually;
using test::GrpcCall;

constexpr std::uint64_t kRevision = 70;

/// An etcd with pods p1000, p1001 and so on. It returns pages like etcd; the script handles
/// streams.
class StreamingEtcd {
 public:
  static constexpr std::size_t kCount = 1300;
  /// `first` is the number of the stream's first pod.
  using Script = std::function<void(StreamingEtcd&, GrpcCall&, std::size_t first)>;

  explicit StreamingEtcd(Script script, std::size_t bytes = 0)
      : script_(std::move(script)),
        filling_(bytes, 'x'),
        server_([this](GrpcCall& call) { serve(call); }) {}

  std::string url() const { return server_.url(); }
  test::GrpcServer& server() { return server_; }
  int pages() const { return pages_; }
  int streams() const { return streams_; }
  void forget_the_past() { forgotten_ = true; }

  /// The pods from `first` to before `last`, as a part of a response.
  test::Proto part(std::size_t first, std::size_t last) const {
    test::Proto out;
    for (std::size_t i = first; i < last; ++i) {
      const std::string name = "p" + std::to_string(1000 + i);
      out.message(2, test::key_value("/p/pods/n/" + name,
                                     json_codec()->encode(pod(name, "a", filling_)), 9, 9));
    }
    return out;
  }
  /// Sends parts of 50, without the fields of the last part.
  void send_parts(GrpcCall& call, std::size_t first, std::size_t last) const {
    for (; first < last; first += 50) send_part(call, part(first, std::min(first + 50, last)));
  }
  static void send_part(GrpcCall& call, const test::Proto& part) {
    call.send(test::Proto().message(1, part).text());
  }
  /// Sends a part without its last bytes.
  void send_part_without_end(GrpcCall& call, std::size_t first, std::size_t last) const {
    const std::string bytes = grpc::framed(test::Proto().message(1, part(first, last)).text());
    call.send_raw(std::string_view(bytes).substr(0, bytes.size() - 20));
  }
  static test::Proto end(std::uint64_t count) {
    return test::Proto().message(1, test::header(kRevision)).number(4, count);
  }

 private:
  void serve(GrpcCall& call) {
    const std::string request = call.message().value_or("");
    if (!call.path().starts_with("/etcdserverpb.KV/Range")) return call.end(12, "unknown method");
    if (forgotten_ && test::number_of(request, 4) != 0)
      return call.end(EtcdError::kOutOfRange,
                      "etcdserver: mvcc: required revision has been compacted");
    const std::string key = test::bytes_of(request, 1);
    constexpr std::size_t kDigits = sizeof "/p/pods/n/p" - 1;
    // A key after that of a pod.
    const std::size_t first =
        key.size() <= kDigits ? 0 : std::stoul(key.substr(kDigits)) - 1000 + 1;
    if (call.path().ends_with("RangeStream")) {
      EXPECT_EQ(test::number_of(request, 4), kRevision) << "the revision of the first page";
      EXPECT_EQ(test::number_of(request, 3), 0u);
      EXPECT_EQ(test::bytes_of(request, 2), "/p/pods/n0");
      ++streams_;
      return script_(*this, call, first);
    }
    const std::size_t limit = test::number_of(request, 3);
    const bool many = !test::bytes_of(request, 2).empty();
    const std::size_t left = many ? kCount - first : 0;
    if (many) ++pages_;
    const std::size_t given = limit == 0 ? left : std::min<std::size_t>(limit, left);
    test::Proto answer = test::answer(kRevision);
    answer.append(part(first, first + given).text());
    if (given < left) answer.number(3, 1);
    call.send(answer.number(4, left).text());
  }

  const Script script_;
  const std::string filling_;
  std::atomic<int> pages_{0};
  std::atomic<int> streams_{0};
  std::atomic<bool> forgotten_{false};
  test::GrpcServer server_;
};

void send_all(StreamingEtcd& etcd, GrpcCall& call, std::size_t first) {
  etcd.send_parts(call, first, StreamingEtcd::kCount);
  StreamingEtcd::send_part(call, StreamingEtcd::end(StreamingEtcd::kCount - first));
  call.end();
}

/// Expects every pod once.
void expect_all(const std::vector<api::Object>& pods) {
  ASSERT_THAT(pods, SizeIs(StreamingEtcd::kCount));
  for (std::size_t i = 0; i < pods.size(); ++i)
    ASSERT_EQ(pods[i].name(), "p" + std::to_string(1000 + i));
}

TEST(RangeStreamTest, StreamsEverythingAfterTheFirstPage) {
  StreamingEtcd etcd(send_all);
  EtcdStore pods(options_for({etcd.url()}), "/p");
  const auto list = pods->list("n/");
  expect_all(list.objects);
  EXPECT_EQ(list.revision, kRevision);
  EXPECT_EQ(etcd.pages(), 1);
  EXPECT_EQ(etcd.streams(), 1);
}

TEST(RangeStreamTest, CountsAsARequest) {
  StreamingEtcd etcd(send_all);
  EtcdOptions options = options_for({etcd.url()});
  options.prefix = "/p";
  options.watch_cache = false;
  options.compaction_interval = {};
  EtcdBackend backend(options);
  StorageClient pods(backend.resource("pods"));
  expect_all(pods.list("n/").objects);
  // The other one is the first page.
  EXPECT_THAT(backend.metrics(),
              HasSubstr("etcd_requests_total{group=\"\",operation=\"list\",resource=\"pods\"} 2"));
}

TEST(RangeStreamTest, AListWithALimitHasPages) {
  StreamingEtcd etcd(send_all);
  EtcdStore pods(options_for({etcd.url()}), "/p");
  ListOptions options;
  options.limit = 600;
  options.predicate = app_is("nothing");
  EXPECT_THAT(pods->list("n/", options).objects, SizeIs(0));
  EXPECT_EQ(etcd.pages(), 2);
  EXPECT_EQ(etcd.streams(), 0);
}

TEST(RangeStreamTest, TheStateOfAWatchIsStreamed) {
  StreamingEtcd etcd(send_all);
  EtcdStore pods(options_for({etcd.url()}), "/p");
  WatchOptions options;
  options.start = WatchOptions::Start::kState;
  const auto watch = pods->watch("n/", options);
  const auto events = watch->take_events(StreamingEtcd::kCount);
  ASSERT_THAT(events, SizeIs(StreamingEtcd::kCount));
  for (std::size_t i = 0; i < events.size(); ++i)
    ASSERT_EQ(events[i].object.name(), "p" + std::to_string(1000 + i));
  EXPECT_EQ(etcd.streams(), 1);
}

TEST(RangeStreamTest, AnEtcdWithoutStreamsIsRemembered) {
  StreamingEtcd etcd([](StreamingEtcd&, GrpcCall& call, std::size_t) {
    call.end(EtcdError::kUnimplemented, "unknown method RangeStream for service etcdserverpb.KV");
  });
  EtcdStore pods(options_for({etcd.url()}), "/p");
  for (int i = 0; i < 3; ++i) expect_all(pods->list("n/").objects);
  EXPECT_EQ(etcd.streams(), 1);
}

/// A way in which a stream ends too early.
struct Early {
  const char* name;
  StreamingEtcd::Script script;
};
void PrintTo(const Early& early, std::ostream* out) { *out << early.name; }

class EarlyEndTest : public testing::TestWithParam<Early> {};

TEST_P(EarlyEndTest, FallsBackToPages) {
  StreamingEtcd etcd(GetParam().script);
  EtcdStore pods(options_for({etcd.url()}), "/p");
  for (int i = 1; i <= 2; ++i) {
    expect_all(pods->list("n/").objects);
    EXPECT_EQ(etcd.streams(), i);
    EXPECT_EQ(etcd.pages(), 2 * i);
  }
}

StreamingEtcd::Script ends_behind(std::size_t parts, int code, const char* message) {
  return [=](StreamingEtcd& etcd, GrpcCall& call, std::size_t first) {
    etcd.send_parts(call, first, first + parts * 50);
    call.end(code, message);
  };
}

INSTANTIATE_TEST_SUITE_P(
    Ends, EarlyEndTest,
    testing::Values(
        Early{"AtOnce", ends_behind(0, 0, "")}, Early{"WithoutAHeader", ends_behind(2, 0, "")},
        Early{"WithTheWrongCount",
              [](StreamingEtcd& etcd, GrpcCall& call, std::size_t first) {
                etcd.send_parts(call, first, first + 100);
                StreamingEtcd::send_part(call, StreamingEtcd::end(StreamingEtcd::kCount - first));
                call.end();
              }},
        Early{"WithMoreToCome",
              [](StreamingEtcd& etcd, GrpcCall& call, std::size_t first) {
                etcd.send_parts(call, first, first + 100);
                StreamingEtcd::send_part(call, StreamingEtcd::end(100).number(3, 1));
                call.end();
              }},
        Early{"InAPart",
              [](StreamingEtcd& etcd, GrpcCall& call, std::size_t first) {
                etcd.send_parts(call, first, first + 100);
                etcd.send_part_without_end(call, first + 100, first + 150);
                call.end();
              }},
        Early{"InAPartWithItsConnection",
              [](StreamingEtcd& etcd, GrpcCall& call, std::size_t first) {
                etcd.send_parts(call, first, first + 100);
                etcd.send_part_without_end(call, first + 100, first + 150);
                call.reset_connection();
              }},
        Early{"WithNothingOfEtcds",
              [](StreamingEtcd& etcd, GrpcCall& call, std::size_t first) {
                etcd.send_parts(call, first, first + 100);
                call.send_raw("<html>hello</html>");
                call.end();
              }},
        Early{"Unavailable", ends_behind(3, EtcdError::kUnavailable, "etcdserver: server stopped")},
        Early{"WithAnotherToken", ends_behind(3, EtcdError::kUnauthenticated,
                                              "etcdserver: revision of auth store is old")}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(RangeStreamTest, ASilentStreamIsAbandoned) {
  StreamingEtcd etcd([](StreamingEtcd& all, GrpcCall& call, std::size_t first) {
    all.send_parts(call, first, first + 100);
    call.wait_for_end();
  });
  EtcdOptions options = options_for({etcd.url()});
  options.request_timeout = std::chrono::seconds(2);
  EtcdStore pods(options, "/p");
  expect_all(pods->list("n/").objects);
  EXPECT_TRUE(eventually([&] { return etcd.server().open_calls() == 0; }));
}

TEST(RangeStreamTest, ACompactedRevisionIsExpired) {
  StreamingEtcd etcd([](StreamingEtcd& all, GrpcCall& call, std::size_t first) {
    all.send_parts(call, first, first + 100);
    all.forget_the_past();
    call.end(EtcdError::kOutOfRange, "etcdserver: mvcc: required revision has been compacted");
  });
  EtcdStore pods(options_for({etcd.url()}), "/p");
  try {
    pods->list("n/");
    FAIL();
  } catch (const api::StatusError& e) {
    EXPECT_TRUE(api::is_resource_expired(e));
  }
}

TEST(RangeStreamTest, AnUnreadStreamHasBackPressure) {
  std::atomic<GrpcCall*> stream{nullptr};
  StreamingEtcd etcd(
      [&](StreamingEtcd& all, GrpcCall& call, std::size_t first) {
        stream = &call;
        send_all(all, call, first);
      },
      50000);
  EtcdStore pods(options_for({etcd.url()}), "/p");
  {
    WatchOptions options;
    options.start = WatchOptions::Start::kState;
    const auto watch = pods->watch("n/", options);
    watch->take(1);
    EXPECT_TRUE(eventually([&] { return stream != nullptr && stream.load()->stalled(); }));
    // A part of 40 MB: the queues of the stream and of the watch.
    EXPECT_LT(stream.load()->written(), 30u << 20);
    EXPECT_THAT(watch->take_events(StreamingEtcd::kCount - 1), SizeIs(StreamingEtcd::kCount - 1));
  }
  EXPECT_TRUE(eventually([&] { return etcd.server().open_calls() == 0; }));
}

TEST(RangeStreamTest, ACancelledListEndsItsStream) {
  StreamingEtcd etcd([](StreamingEtcd& all, GrpcCall& call, std::size_t first) {
    test::Proto bad;
    bad.message(2, test::key_value("/p/pods/n/p1600", "garbage", 9, 9));
    all.send_parts(call, first, first + 100);
    StreamingEtcd::send_part(call, bad);
    call.wait_for_end();
  });
  EtcdStore pods(options_for({etcd.url()}), "/p");
  EXPECT_THROW(pods->list("n/"), StorageError);
  EXPECT_TRUE(eventually([&] { return etcd.server().open_calls() == 0; }));
}

}  // namespace
}  // namespace lookout::apiserver::storage::etcd3
