// The etcd client: failing members, users, certificates, and malformed responses.
#include "apiserver/storage/etcd3/client.h"

#include <atomic>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/io_context.hpp>
#include <mutex>
#include <thread>

#include "lookout/api/status.h"
#include "lookout/apiserver/storage/etcd3.h"
#include "tests/apiserver/grpc/grpc_server.h"
#include "tests/apiserver/storage/etcd3/etcd_answers.h"
#include "tests/apiserver/storage/etcd3/etcd_process.h"
#include "tests/apiserver/storage/etcd3/etcd_store_fixture.h"
#include "tests/apiserver/storage/etcd3/tested_etcd.h"
#include "tests/rest/certificates.h"
#include "tests/support/eventually.h"
#include "tests/support/files.h"
#include "tests/support/http_server.h"
#include "tests/support/matchers.h"

namespace lookout::apiserver::storage::etcd3 {
namespace {

using grpc::Http2Error;
using test::GrpcCall;
using test::GrpcServer;

constexpr int kUnauthenticated = EtcdError::kUnauthenticated;
constexpr const char* kRangePath = "/etcdserverpb.KV/Range";

std::string gone() { return "http://127.0.0.1:" + std::to_string(test::free_port()); }

/// Responds to every call with this message.
GrpcServer::Script answers(test::Proto message) {
  return [message](GrpcCall& call) { call.send(message.text()); };
}

GrpcServer::Script refuses(int code, std::string message) {
  return [code, message](GrpcCall& call) { call.end(code, message); };
}

TEST(EtcdClientTest, GoesOnToAMemberThatIsThereAndStays) {
  std::atomic<int> requests{0};
  GrpcServer server([&](GrpcCall& call) {
    ++requests;
    EXPECT_EQ(call.path(), kRangePath);
    EXPECT_EQ(call.header("te"), "trailers");
    EXPECT_FALSE(call.header("grpc-timeout").empty());
    EXPECT_EQ(test::bytes_of(call.message().value_or(""), 1), "/a");
    EXPECT_FALSE(call.message()) << "nothing more comes";
    call.send(test::answer(7).text());
  });
  EtcdClient client(options_for({gone(), server.url(), gone()}));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.range("/a").revision, 7u);
  EXPECT_EQ(requests, 3);
  EXPECT_EQ(server.connections(), 1);
}

TEST(EtcdClientTest, AReadThatGotNoAnswerIsSentAgain) {
  std::atomic<int> requests{0};
  GrpcServer server([&](GrpcCall& call) {
    if (++requests == 1) {
      call.reset_connection();
    } else {
      call.send(test::answer(7).text());
    }
  });
  EtcdClient client(options_for({server.url()}));
  EXPECT_EQ(client.range("/a").revision, 7u);
  EXPECT_EQ(requests, 2);
}

TEST(EtcdClientTest, AReadThatAMemberAbandonsIsSentAgain) {
  for (const int code : {1, 4, 13, 14}) {
    std::atomic<int> requests{0};
    GrpcServer server([&](GrpcCall& call) {
      if (++requests > 1) return static_cast<void>(call.send(test::answer(7).text()));
      call.end(code, "the member ends");
    });
    EtcdClient client(options_for({server.url()}));
    EXPECT_EQ(client.range("/a").revision, 7u) << code;
    EXPECT_EQ(requests, 2) << code;
  }
}

// kine's revisions go back a little now and then.
TEST(EtcdClientTest, WithoutAClusterIDALowerRevisionIsNoOtherHistory) {
  std::atomic<std::uint64_t> revision{10};
  GrpcServer server([&](GrpcCall& call) { call.send(test::answer(revision).text()); });
  EtcdClient client(options_for({server.url()}));
  const auto first = client->lineage();
  client.range("/a");
  revision = 9;
  EXPECT_EQ(client.range("/a").revision, 9u);
  EXPECT_TRUE(client->is_now(first));
  EXPECT_EQ(client->newest_known(), 10u);
}

TEST(EtcdClientTest, NoticesThatAnotherHistoryIsTold) {
  std::atomic<std::uint64_t> cluster{5};
  std::atomic<std::uint64_t> revision{10};
  GrpcServer server([&](GrpcCall& call) { call.send(test::answer(revision, cluster).text()); });
  EtcdClient client(options_for({server.url()}));
  const auto first = client->lineage();
  for (revision = 10; revision < 13; ++revision) client.range("/a");
  client.range("/a");
  EXPECT_TRUE(client->is_now(first));
  EXPECT_FALSE(first.ends.stop_requested());
  cluster = 6;
  revision = 20;
  client.range("/a");
  EXPECT_FALSE(client->is_now(first));
  EXPECT_TRUE(first.ends.stop_requested());
  const auto second = client->lineage();
  client.range("/a");
  EXPECT_TRUE(client->is_now(second));
  revision = 19;
  client.range("/a");
  EXPECT_FALSE(client->is_now(second));
  EXPECT_TRUE(second.ends.stop_requested());
}

TEST(EtcdClientTest, AWriteThatGotNoAnswerIsNotSentAgain) {
  const std::vector<GrpcServer::Script> endings = {
      [](GrpcCall& call) { call.reset_connection(); },
      [](GrpcCall& call) { call.reset(Http2Error::kInternal); },
      [](GrpcCall& call) { call.end(EtcdError::kUnavailable, "etcdserver: leader changed"); }};
  for (const auto& ending : endings) {
    std::atomic<int> requests{0};
    const auto script = [&](GrpcCall& call) {
      ++requests;
      ending(call);
    };
    GrpcServer one(script);
    GrpcServer two(script);
    EtcdClient client(options_for({one.url(), two.url()}));
    EXPECT_THROW(client.run(client->txn(optimistic_put("/a", "x", 0, 0))), Error);
    EXPECT_EQ(requests, 1);
  }
}

TEST(EtcdClientTest, AWriteGoesToAnotherMemberIfNobodyTookIt) {
  const test::Proto done = test::answer(8).number(2, 1);
  GrpcServer server(answers(done));
  GrpcServer refusing([](GrpcCall& call) { call.reset(Http2Error::kRefusedStream); });
  // Streams after the last processed one were not processed.
  GrpcServer leaving([](GrpcCall& call) {
    call.go_away(call.id() - 1);
    call.wait_for_end();
  });
  test::HttpServer mute([](test::HttpConnection& connection) { connection.wait_for_close(); });
  EtcdOptions options =
      options_for({gone(), refusing.url(), leaving.url(), mute.url(), server.url()});
  options.dial_timeout = std::chrono::milliseconds(100);
  EtcdClient client(options);
  const TxnResponse answer = client.run(client->txn(optimistic_put("/a", "x", 0, 0)));
  EXPECT_TRUE(answer.succeeded);
  EXPECT_EQ(answer.revision, 8u);
}

TEST(EtcdClientTest, AMemberWithoutALeaderIsLeft) {
  GrpcServer lonely(refuses(EtcdError::kUnavailable, "etcdserver: no leader"));
  GrpcServer server(answers(test::answer(7)));
  EtcdClient client(options_for({lonely.url(), server.url()}));
  EXPECT_EQ(client.range("/a").revision, 7u);
}

/// The result of a read.
rest::TransportError failure_of(EtcdClient& client) {
  try {
    client.range("/a");
  } catch (const rest::TransportError& e) {
    return e;
  }
  ADD_FAILURE() << "there is an answer";
  return {rest::TransportError::Kind::kOther, ""};
}

TEST(EtcdClientTest, GivesUpWhenTheTimeIsOver) {
  GrpcServer silent([](GrpcCall& call) { call.wait_for_end(); });
  EtcdOptions options = options_for({silent.url()});
  options.request_timeout = std::chrono::seconds(2);
  EtcdClient client(options);
  const rest::TransportError e = failure_of(client);
  EXPECT_EQ(e.kind(), rest::TransportError::Kind::kTimeout);
  EXPECT_THAT(e.what(), HasSubstr(kRangePath));
  EXPECT_TRUE(test::eventually([&] { return silent.open_calls() == 0; })) << "and says so";
}

TEST(EtcdClientTest, ARequestWhoseCallerGoesIsCancelled) {
  GrpcServer silent([](GrpcCall& call) { call.wait_for_end(); });
  EtcdClient client(options_for({silent.url()}));
  {
    boost::asio::io_context caller(1);
    RangeRequest request;
    request.key = "/a";
    boost::asio::co_spawn(caller, client->range(std::move(request)), boost::asio::detached);
    EXPECT_TRUE(test::eventually([&] {
      caller.poll();
      return silent.open_calls() == 1;
    }));
  }
  EXPECT_TRUE(test::eventually([&] { return silent.open_calls() == 0; }));
}

TEST(EtcdClientTest, WithNobodyThereSaysSo) {
  EtcdOptions options = options_for({gone(), gone()});
  options.request_timeout = std::chrono::seconds(2);
  EtcdClient client(options);
  const rest::TransportError e = failure_of(client);
  EXPECT_THAT(e.what(), HasSubstr("Connection refused"));
  // The second one if the time ends while a connection is made.
  EXPECT_THAT(e.kind(), testing::AnyOf(rest::TransportError::Kind::kRefused,
                                       rest::TransportError::Kind::kUnreachable));
}

TEST(EtcdClientTest, WhenTheTimeIsOverItSaysWhatWentWrongBefore) {
  std::atomic<int> calls{0};
  GrpcServer server([&](GrpcCall& call) {
    if (++calls == 1)
      call.end_body();  // a response without a status, which is retried
    else
      call.wait_for_end();
  });
  EtcdOptions options = options_for({server.url()});
  options.request_timeout = std::chrono::seconds(4);
  EtcdClient client(options);
  const rest::TransportError e = failure_of(client);
  EXPECT_EQ(e.kind(), rest::TransportError::Kind::kTimeout);
  EXPECT_THAT(e.what(), HasSubstr("no answer in time"));
  EXPECT_THAT(e.what(), HasSubstr("ended without a status"));
  EXPECT_EQ(calls, 2);
}

struct Wrong {
  const char* name;
  GrpcServer::Script script;
  const char* message;
};
void PrintTo(const Wrong& wrong, std::ostream* out) { *out << wrong.name; }

class WrongAnswerTest : public testing::TestWithParam<Wrong> {};

TEST_P(WrongAnswerTest, IsAClearError) {
  GrpcServer server(GetParam().script);
  EtcdOptions options = options_for({server.url()});
  options.request_timeout = std::chrono::seconds(4);
  EtcdClient client(options);
  try {
    client.range("/a");
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr(GetParam().message));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Answers, WrongAnswerTest,
    testing::Values(
        Wrong{"NoMessage", [](GrpcCall& call) { call.send_raw("<html>hello</html>"); },
              "did not answer as an etcd does"},
        Wrong{"Empty", [](GrpcCall& call) { call.end(); }, "the answer is not one whole message"},
        Wrong{"Cut",
              [](GrpcCall& call) {
                call.send_raw(grpc::framed(test::answer(7).text()).substr(0, 6));
              },
              "the answer is not one whole message"},
        Wrong{"Two",
              [](GrpcCall& call) {
                call.send(test::answer(7).text());
                call.send(test::answer(8).text());
              },
              "the answer is not one whole message"},
        Wrong{"NoRevision", [](GrpcCall& call) { call.send(""); }, "a range without a revision"},
        Wrong{"NoStatus", [](GrpcCall& call) { call.end_body(); }, "ended without a status"},
        Wrong{"BadStatus",
              [](GrpcCall& call) {
                call.answer({{":status", "200"},
                             {"content-type", "application/grpc"},
                             {"grpc-status", "x"}});
              },
              "no valid status"},
        Wrong{"NotFound",
              [](GrpcCall& call) {
                call.answer({{":status", "404"}, {"content-type", "text/plain"}});
              },
              "HTTP status 404"},
        Wrong{"NoGrpc",
              [](GrpcCall& call) {
                call.answer({{":status", "200"}, {"content-type", "text/html"}});
              },
              "does not speak gRPC"},
        Wrong{"Refused", refuses(3, "etcdserver: key is%20not provided%"), "key is not provided%"}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(EtcdClientTest, SomebodyWhoSpeaksAnotherProtocolIsToldApart) {
  test::HttpServer web([](test::HttpConnection& connection) {
    connection.write("HTTP/1.1 400 Bad Request\r\n\r\n");
    connection.wait_for_close();
  });
  EtcdClient client(options_for({web.url()}));
  const rest::TransportError e = failure_of(client);
  EXPECT_EQ(e.kind(), rest::TransportError::Kind::kProtocol);
  EXPECT_THAT(e.what(), HasSubstr("the server's HTTP/2 is wrong"));
}

TEST(EtcdClientTest, AMemberThatCannotBeUsedIsLeft) {
  const test::TempDir dir;
  const test::CertificateAuthority authority;
  test::write_file(dir / "ca.crt", authority.certificate());
  const test::KeyPair foreign = test::CertificateAuthority().issue_local();
  const auto never = [](test::HttpConnection& connection) { connection.wait_for_close(); };
  test::HttpServer stranger(
      never, test::HttpServerTls{.certificate = foreign.certificate, .key = foreign.key});
  test::HttpServer web([](test::HttpConnection& connection) {
    connection.write("HTTP/1.1 400 Bad Request\r\n\r\n");
    connection.wait_for_close();
  });
  GrpcServer good(answers(test::answer(7)));
  EtcdOptions options = options_for({stranger.url(), web.url(), good.url()});
  options.ca_file = (dir / "ca.crt").string();
  EXPECT_EQ(EtcdClient(options).range("/a").revision, 7u);
  // With TLS, no request starts before the certificate is accepted.
  options.endpoints = {stranger.url(), good.url()};
  EXPECT_EQ(EtcdClient(options).put("/a", "x"), 7u);
  // Retries do not help.
  options.endpoints = {stranger.url(), web.url()};
  options.request_timeout = std::chrono::minutes(10);
  EtcdClient nobody(options);
  EXPECT_EQ(failure_of(nobody).kind(), rest::TransportError::Kind::kProtocol);
}

TEST(EtcdClientTest, NeedsNoTokenUntilEtcdAuthenticates) {
  std::atomic<bool> authenticates{false};
  std::atomic<int> questions{0};
  GrpcServer server([&](GrpcCall& call) {
    if (call.path() == "/etcdserverpb.Auth/Authenticate") {
      ++questions;
      if (authenticates) return static_cast<void>(call.send(test::Proto().bytes(2, "t").text()));
      call.end(EtcdError::kFailedPrecondition, "etcdserver: authentication is not enabled");
    } else if (authenticates && call.header("token") != "t") {
      call.end(EtcdError::kInvalidArgument, "etcdserver: user name is empty");
    } else {
      call.send(test::answer(7).text());
    }
  });
  EtcdClient client(options_of_user({server.url()}, "ann", "secret"));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.range("/a").revision, 7u);
  EXPECT_EQ(questions, 1);
  authenticates = true;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.range("/a").revision, 7u);
  EXPECT_EQ(questions, 2);
}

TEST(EtcdClientTest, AUserWithoutAPasswordDoesNotAuthenticate) {
  GrpcServer server([](GrpcCall& call) {
    EXPECT_EQ(call.path(), kRangePath);
    call.send(test::answer(7).text());
  });
  EXPECT_EQ(EtcdClient(options_of_user({server.url()}, "ann", "")).range("/a").revision, 7u);
}

TEST(EtcdClientTest, ShowsATokenAndAsksForAnotherOneWhenItIsNoLongerGood) {
  std::atomic<int> tokens{0};
  GrpcServer server([&](GrpcCall& call) {
    if (call.path() == "/etcdserverpb.Auth/Authenticate") {
      const std::string message = call.message().value_or("");
      EXPECT_EQ(test::bytes_of(message, 1), "ann");
      EXPECT_EQ(test::bytes_of(message, 2), "se\"cret");
      call.send(test::Proto().bytes(2, "t" + std::to_string(++tokens)).text());
      // The first token becomes invalid, as after a restart.
    } else if (call.header("token") != "t2") {
      call.end(kUnauthenticated, "etcdserver: invalid auth token");
    } else {
      call.send(test::answer(7).text());
    }
  });
  EtcdClient client(options_of_user({server.url()}, "ann", "se\"cret"));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.range("/a").revision, 7u);
  EXPECT_EQ(tokens, 2);
}

TEST(EtcdClientTest, ARevisionThatIsForgottenIsExpired) {
  GrpcServer server([&](GrpcCall& call) {
    if (test::number_of(call.message().value_or(""), 4) != 3)
      return static_cast<void>(call.send(test::answer(7).text()));
    call.end(EtcdError::kOutOfRange, "etcdserver: mvcc: required revision has been compacted");
  });
  EtcdOptions options = options_for({server.url()});
  options.watch_cache = false;
  EtcdBackend backend(options);
  StorageClient pods(backend.resource("pods"));
  ListOptions past;
  past.match = VersionMatch::kExact;
  past.revision = 3;
  try {
    pods.list("", past);
    FAIL();
  } catch (const api::StatusError& e) {
    EXPECT_EQ(e.status().code, 410);
  }
}

TEST(EtcdClientTest, AMemberThatTakesFewCallsGetsAnotherConnection) {
  // A proxy may allow only 100 of the 200 watches, which need a stream each.
  std::atomic<int> open{0};
  GrpcServer server(
      [&](GrpcCall& call) {
        ++open;
        EXPECT_TRUE(test::eventually([&] { return open == 5; }));
        call.send(test::answer(7).text());
      },
      {.max_streams = 2});
  EtcdClient client(options_for({server.url()}));
  std::vector<std::thread> threads;
  std::atomic<int> good{0};
  for (int i = 0; i < 5; ++i) {
    threads.emplace_back([&] {
      TestThread thread;
      RangeRequest request;
      request.key = "/a";
      if (thread.run(client->range(request)).revision == 7) ++good;
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(good, 5);
  EXPECT_EQ(server.connections(), 3);
}

TEST(EtcdClientTest, AnAnswerThatIsWrongIsNotQuoted) {
  test::Proto secret = test::answer(7).bytes(2, "\x0asecret");
  GrpcServer server(answers(secret));
  EtcdClient client(options_for({server.url()}));
  try {
    client.range("/a");
    FAIL();
  } catch (const api::DecodeError& e) {
    EXPECT_THAT(e.what(), testing::Not(HasSubstr("secret")));
  }
}

TEST(EtcdClientTest, ARequestThatIsTooLargeIsNotSent) {
  std::atomic<int> requests{0};
  GrpcServer server([&](GrpcCall& call) {
    ++requests;
    call.send(test::answer(7).text());
  });
  EtcdOptions options = options_for({server.url()});
  options.max_send_bytes = 1000;
  EtcdClient client(options);
  EXPECT_EQ(client.put("/a", std::string(900, 'x')), 7u);
  try {
    client.put("/a", std::string(1000, 'x'));
    FAIL();
  } catch (const EtcdError& e) {
    EXPECT_EQ(e.code(), EtcdError::kResourceExhausted);
    EXPECT_THAT(e.what(), HasSubstr("at most 1000 are sent"));
  }
  EXPECT_EQ(requests, 1);

  options.watch_cache = false;
  options.compaction_interval = {};
  EtcdBackend backend(options);
  StorageClient pods(backend.resource("pods"));
  try {
    pods.create("n/a", pod("a", "a", std::string(2000, 'x')));
    FAIL();
  } catch (const api::StatusError& e) {
    EXPECT_TRUE(api::is_request_entity_too_large(e)) << e.what();
  }
  EXPECT_EQ(requests, 1);
}

// The words of grpc-go, for a request of more than --max-request-bytes and 512 KiB.
TEST(EtcdClientTest, ARequestThatEtcdDoesNotReadIsTooLarge) {
  std::atomic<bool> is_full{false};
  GrpcServer server([&](GrpcCall& call) {
    call.message();
    call.end(EtcdError::kResourceExhausted,
             is_full ? "etcdserver: mvcc: database space exceeded"
                     : "grpc: received message larger than max (3000123 vs. 2097152)");
  });
  EtcdOptions options = options_for({server.url()});
  options.watch_cache = false;
  options.compaction_interval = {};
  EtcdBackend backend(options);
  StorageClient pods(backend.resource("pods"));
  const auto status = [&] {
    try {
      pods.create("n/a", pod("a"));
    } catch (const api::StatusError& e) {
      return e.status().code;
    }
    return 0;
  };
  EXPECT_EQ(status(), 413);
  // Not everything that is exhausted is the request's fault.
  is_full = true;
  EXPECT_EQ(status(), 500);
}

TEST(EtcdClientTest, AnAnswerThatIsTooLargeIsRefused) {
  GrpcServer server([](GrpcCall& call) {
    const bool large = test::bytes_of(call.message().value_or(""), 1) == "/large";
    const auto kv = test::key_value("/a", std::string(large ? 2000 : 900, 'x'), 5, 5);
    call.send(test::answer(7).message(2, kv).text());
  });
  EtcdOptions options = options_for({server.url()});
  options.max_receive_bytes = 1000;
  EtcdClient client(options);
  EXPECT_THAT(client.range("/a").kvs, SizeIs(1));
  try {
    client.range("/large");
    FAIL();
  } catch (const EtcdError& e) {
    EXPECT_EQ(e.code(), EtcdError::kResourceExhausted);
    EXPECT_THAT(e.what(), HasSubstr("at most 1000 are accepted (max_receive_bytes)"));
  }
  EXPECT_THAT(client.range("/a").kvs, SizeIs(1)) << "others are not troubled";
}

/// An etcd with a test's list of members.
class ListedEtcd {
 public:
  std::string url() const { return server_.url(); }
  int ranges() const { return ranges_; }
  void list(std::vector<std::string> urls, const std::string& learner = {}) {
    test::Proto answer = test::answer(7);
    for (const std::string& url : urls) answer.message(2, test::Proto().bytes(4, url));
    if (!learner.empty()) answer.message(2, test::Proto().bytes(4, learner).number(5, 1));
    const std::lock_guard lock(mutex_);
    members_ = answer.text();
  }

 private:
  void serve(GrpcCall& call) {
    const std::lock_guard lock(mutex_);
    if (call.path() == "/etcdserverpb.Cluster/MemberList")
      return static_cast<void>(call.send(members_));
    ++ranges_;
    call.send(test::answer(7).text());
  }

  std::mutex mutex_;
  std::string members_;  // guarded by mutex_
  std::atomic<int> ranges_{0};
  GrpcServer server_{[this](GrpcCall& call) { serve(call); }};
};

TEST(EtcdClientTest, GoesWhereTheListOfMembersSays) {
  ListedEtcd first;
  ListedEtcd second;
  ListedEtcd learner;
  EtcdClient client(options_for({first.url()}));
  first.list({first.url()});
  client.run(client->sync_members());
  client.range("/a");
  EXPECT_EQ(first.ranges(), 1) << "nothing has changed";

  first.list({"unix://somewhere", second.url() + "/"}, learner.url());
  client.run(client->sync_members());
  for (int i = 0; i < 3; ++i) client.range("/a");
  EXPECT_EQ(first.ranges(), 1);
  EXPECT_EQ(second.ranges(), 3);
  EXPECT_EQ(learner.ranges(), 0);

  for (const std::vector<std::string>& useless :
       {std::vector<std::string>(), std::vector<std::string>{"unix://somewhere"}}) {
    second.list(useless);
    client.run(client->sync_members());
    client.range("/a");
  }
  EXPECT_EQ(second.ranges(), 5) << "a list without a usable member changes nothing";

  // The one in use stays in use, wherever it is in the list.
  second.list({gone(), second.url()});
  client.run(client->sync_members());
  client.range("/a");
  EXPECT_EQ(second.ranges(), 6);
}

TEST(EtcdClientTest, ABackendKeepsToTheListOfMembers) {
  ListedEtcd first;
  ListedEtcd second;
  first.list({second.url()});
  second.list({second.url()});
  EtcdOptions options = options_for({first.url()});
  options.sync_interval = std::chrono::milliseconds(20);
  EtcdBackend backend(options);
  TestThread thread;
  EXPECT_TRUE(test::eventually([&] {
    thread.run(backend.current_revision());
    return second.ranges() > 0;
  }));
  second.list({first.url()});
  const int before = first.ranges();
  EXPECT_TRUE(test::eventually([&] {
    thread.run(backend.current_revision());
    return first.ranges() > before;
  })) << "again and again";
}

TEST(EtcdClientTest, RefusesOptionsThatMakeNoSense) {
  EventLoop loop(1);
  EXPECT_THROW(Client(options_for(std::vector<std::string>()), loop), Error);
  EXPECT_THROW(Client(options_for({"ftp://x"}), loop), Error);
  EtcdOptions half = options_for({"http://127.0.0.1:1"});
  half.cert_file = "/dev/null";
  half.ca_file = "/none";
  EXPECT_THROW(Client(half, loop), Error);
  // No authorities: those of the system are not meant.
  EtcdOptions empty = options_for({"https://127.0.0.1:1"});
  empty.ca_file = "/dev/null";
  EXPECT_THROW(Client(empty, loop), Error);
}

// --- with a real one

class RealEtcdTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::etcd_is_there()) GTEST_SKIP() << "*** no etcd here ***";
  }
};

/// The same with the model of one.
class AnyEtcdTest : public testing::TestWithParam<test::TestedEtcd> {
 protected:
  void SetUp() override {
    const std::string missing = GetParam().missing();
    if (!missing.empty()) GTEST_SKIP() << missing;
  }
};

INSTANTIATE_TEST_SUITE_P(Etcds, AnyEtcdTest,
                         testing::Values(test::kRealEtcd, test::kModel34, test::kModel35),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_P(AnyEtcdTest, PutsRangesDeletesAndCompacts) {
  EtcdClient client(options_for(test::reach_shared(GetParam())));
  const std::string prefix = test::unique_etcd_prefix();
  std::string value(3000, '\0');
  for (std::size_t i = 0; i < value.size(); ++i) value[i] = static_cast<char>(i * 7);
  const Revision first = client.put(prefix + "/a", value);
  const Revision second = client.put(prefix + "/b", "b");
  EXPECT_EQ(second, first + 1);
  const RangeResponse all = client.range(prefix, true);
  ASSERT_THAT(all.kvs, SizeIs(2));
  EXPECT_EQ(all.kvs[0].value, value) << "any bytes";
  EXPECT_EQ(all.count, 2u);
  client.run(client->remove(prefix + "/a"));
  EXPECT_THAT(client.range(prefix, true).kvs, SizeIs(1));
  client.run(client->compact(second));
  RangeRequest past;
  past.key = prefix + "/a";
  past.revision = first;
  try {
    client.run(client->range(past));
    FAIL();
  } catch (const EtcdError& e) {
    EXPECT_TRUE(e.is_compacted()) << e.what();
  }
  past.revision = second + 1000;
  try {
    client.run(client->range(past));
    FAIL();
  } catch (const EtcdError& e) {
    EXPECT_TRUE(e.is_future_revision()) << e.what();
  }
}

TEST_P(AnyEtcdTest, LeasesEndWithTheirKeys) {
  EtcdClient client(options_for(test::reach_shared(GetParam())));
  const std::string key = test::unique_etcd_prefix() + "/a";
  const Lease lease = client.run(client->grant_lease(std::chrono::seconds(100)));
  EXPECT_EQ(lease.ttl, std::chrono::seconds(100));
  client.run(client->put(key, "x", lease.id));
  EXPECT_EQ(client.range(key).kvs.at(0).lease, lease.id);
  EXPECT_EQ(client.run(client->keep_alive(lease.id)), std::chrono::seconds(100));
  client.run(client->revoke_lease(lease.id));
  EXPECT_THAT(client.range(key).kvs, SizeIs(0));
  EXPECT_EQ(client.run(client->keep_alive(lease.id)), std::chrono::seconds(0));
}

TEST_P(AnyEtcdTest, SaysWhatItIs) {
  const EtcdOptions options = options_for(test::reach_shared(GetParam()));
  EtcdClient client(options);
  EXPECT_THAT(client.run(client->status()).version, HasSubstr("3."));
  EXPECT_EQ(client.run(client->member_urls()), options.endpoints);
}

TEST_F(RealEtcdTest, AWatchLeavesAMemberThatCannotBeUsed) {
  test::HttpServer web([](test::HttpConnection& connection) {
    connection.write("HTTP/1.1 400 Bad Request\r\n\r\n");
    connection.wait_for_close();
  });
  const std::string prefix = test::unique_etcd_prefix();
  EtcdStore good(options_for(test::shared_etcd().endpoints()), prefix);
  good->create("n/a", pod("a"));
  std::vector<std::string> endpoints = test::shared_etcd().endpoints();
  endpoints.insert(endpoints.begin(), web.url());
  EtcdStore both(options_for(endpoints), prefix);
  auto watch = both->watch("", from_revision(good->current_revision()));
  good->create("n/b", pod("b"));
  EXPECT_EQ(watch->take(1), std::vector<std::string>{"ADDED n/b"});
}

TEST_F(RealEtcdTest, UsersAndPasswords) {
  test::EtcdCluster etcd;
  etcd.etcdctl({"user", "add", "root:pass word"});
  etcd.etcdctl({"user", "grant-role", "root", "root"});
  etcd.etcdctl({"auth", "enable"});
  EtcdClient nobody(options_for(etcd.endpoints()));
  EXPECT_THROW(nobody.range("/a"), EtcdError);
  EtcdOptions options = options_of_user(etcd.endpoints(), "root", "wrong");
  EtcdClient wrong(options);
  EXPECT_THROW(wrong.range("/a"), EtcdError);
  options.password = "pass word";
  EtcdClient root(options);
  const Revision revision = root.put("/a", "x");
  EXPECT_EQ(root.range("/a").revision, revision);
  // Watches have tokens, too; a restart of etcd invalidates them.
  options.future_wait = std::chrono::seconds(30);  // etcd's password check is slow
  EtcdBackend backend(options);
  StorageClient pods(backend.resource("pods"));
  auto watch = pods.watch("", {});
  pods.create("n/a", pod("a"));
  EXPECT_EQ(watch->take(1).at(0), "ADDED n/a");
  etcd.kill(0);
  etcd.restart(0);
  EXPECT_EQ(root.range("/a").revision, revision + 1);
  pods.remove("n/a");
  EXPECT_EQ(watch->take(1).at(0), "DELETED n/a");
}

// A restarted etcd has no tokens. It rejects them within a watch's stream.
TEST_F(RealEtcdTest, AWatchWhoseTokenIsForgottenGoesOnWithAnotherOne) {
  test::EtcdCluster etcd;
  etcd.etcdctl({"user", "add", "root:pw"});
  etcd.etcdctl({"user", "grant-role", "root", "root"});
  etcd.etcdctl({"auth", "enable"});
  EtcdOptions options = options_of_user(etcd.endpoints(), "root", "pw");
  options.watch_cache = false;
  EtcdBackend watching(options);
  EtcdBackend writing(options);
  StorageClient watched(watching.resource("pods"));
  StorageClient pods(writing.resource("pods"));
  auto watch = watched.watch("", {});
  pods.create("n/a", pod("a"));
  EXPECT_EQ(watch->take(1).at(0), "ADDED n/a");
  for (const std::string name : {"n/b", "n/c"}) {
    etcd.kill(0);
    etcd.restart(0);
    EXPECT_TRUE(test::eventually([&] {
      try {
        pods.create(name, pod(name.substr(2)));
        return true;
      } catch (const StorageError& e) {
        return e.code() == StorageError::Code::kKeyExists;
      }
    }));
    pods.remove(name);
    EXPECT_EQ(watch->take(2), (std::vector<std::string>{"ADDED " + name, "DELETED " + name}));
  }
}

TEST_F(RealEtcdTest, TlsWithClientCertificates) {
  const test::TempDir dir;
  const test::CertificateAuthority authority;
  const auto file = [&](const std::string& name, const std::string& text) {
    test::write_file(dir / name, text);
    return (dir / name).string();
  };
  const test::KeyPair server = authority.issue_local();
  const test::KeyPair user = authority.issue({.common_name = "lookout", .names = {}});
  const std::string ca = file("ca.crt", authority.certificate());
  test::EtcdCluster::Options cluster;
  cluster.tls = true;
  cluster.flags = {"--cert-file",       file("server.crt", server.certificate),
                   "--key-file",        file("server.key", server.key),
                   "--trusted-ca-file", ca,
                   "--client-cert-auth"};
  test::EtcdCluster etcd(cluster);
  EtcdOptions options = options_for(etcd.endpoints());
  options.ca_file = ca;
  options.cert_file = file("user.crt", user.certificate);
  options.key_file = file("user.key", user.key);
  EtcdClient client(options);
  const Revision revision = client.put("/a", "x");
  EXPECT_EQ(client.range("/a").revision, revision);
  {
    // With HTTP/2, watches share a connection with other requests.
    EtcdBackend backend(options);
    StorageClient pods(backend.resource("pods"));
    auto watch = pods.watch("", {});
    pods.create("n/a", pod("a"));
    pods.remove("n/a");
    EXPECT_EQ(watch->take(2), (std::vector<std::string>{"ADDED n/a", "DELETED n/a"}));
  }
  {
    // A certificate that is rejected until it is replaced.
    EtcdOptions renewed = options;
    const test::KeyPair stranger =
        test::CertificateAuthority().issue({.common_name = "lookout", .names = {}});
    renewed.cert_file = file("renewed.crt", stranger.certificate);
    renewed.key_file = file("renewed.key", stranger.key);
    renewed.request_timeout = std::chrono::milliseconds(2000);
    EtcdClient other(renewed);
    EXPECT_THROW(other.range("/a"), rest::TransportError);
    file("renewed.crt", user.certificate);
    file("renewed.key", user.key);
    EXPECT_TRUE(test::eventually([&] {
      try {
        return other.range("/a").revision >= revision;
      } catch (const rest::TransportError&) {
        return false;
      }
    }));
  }
  {
    // Authorities that have not signed the server's certificate, until they are replaced by the right ones.
    // A file without a certificate changes nothing.
    EtcdOptions renewed = options;
    renewed.ca_file = file("renewed-ca.crt", test::CertificateAuthority().certificate());
    renewed.request_timeout = std::chrono::milliseconds(2000);
    EtcdClient other(renewed);
    EXPECT_THROW(other.range("/a"), rest::TransportError);
    file("renewed-ca.crt", authority.certificate());
    EXPECT_TRUE(test::eventually([&] {
      try {
        return other.range("/a").revision >= revision;
      } catch (const rest::TransportError&) {
        return false;
      }
    }));
    file("renewed-ca.crt", "");
    EXPECT_GE(other.range("/a").revision, revision);
  }
  EtcdOptions anonymous = options;
  anonymous.cert_file.clear();
  anonymous.key_file.clear();
  anonymous.request_timeout = std::chrono::milliseconds(2000);
  EtcdClient nobody(anonymous);
  EXPECT_THROW(nobody.range("/a"), rest::TransportError);

  // With authentication the common name is the user.
  const auto control = [&](const std::vector<std::string>& arguments) {
    std::vector<std::string> all = {"--cacert",        ca,      "--cert",
                                    options.cert_file, "--key", options.key_file};
    all.insert(all.end(), arguments.begin(), arguments.end());
    etcd.etcdctl(all);
  };
  for (const std::string name : {"root", "lookout"}) {
    control({"user", "add", name, "--no-password"});
    control({"user", "grant-role", name, "root"});
  }
  control({"auth", "enable"});
  EXPECT_GT(client.put("/b", "x"), revision);
  const test::KeyPair other = authority.issue({.common_name = "other", .names = {}});
  EtcdOptions unknown = options;
  unknown.cert_file = file("other.crt", other.certificate);
  unknown.key_file = file("other.key", other.key);
  EtcdClient refused(unknown);
  EXPECT_THROW(refused.put("/b", "y"), EtcdError);
}

}  // namespace
}  // namespace lookout::apiserver::storage::etcd3
