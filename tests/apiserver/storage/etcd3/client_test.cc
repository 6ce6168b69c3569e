// The etcd client against servers of the test: failing members, users, and malformed responses.
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
#include "tests/apiserver/storage/etcd3/etcd_store_fixture.h"
#include "tests/rest/certificates.h"
#include "tests/support/eventually.h"
#include "tests/support/files.h"
#include "tests/support/http_server.h"
#include "tests/support/matchers.h"
#include "tests/support/process.h"

namespace lookout::apiserver::storage::etcd3 {
namespace {

using grpc::Http2Error;
using test::GrpcCall;
using test::GrpcServer;

constexpr int kUnauthenticated = EtcdError::kUnauthenticated;
constexpr const char* kRangePath = "/etcdserverpb.KV/Range";
constexpr const char* kAuthenticatePath = "/etcdserverpb.Auth/Authenticate";

std::string gone() { return "http://127.0.0.1:" + std::to_string(test::free_port()); }

/// Responds to every call with this message.
GrpcServer::Script answers(test::Proto message) {
  return [message](GrpcCall& call) { call.send(message.text()); };
}

GrpcServer::Script refuses(int code, std::string message) {
  return [code, message](GrpcCall& call) { call.end(code, message); };
}

TEST(EtcdClientTest, UsesAReachableMemberAndStays) {
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

TEST(EtcdClientTest, AnUnansweredReadIsRetried) {
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

TEST(EtcdClientTest, AnAbandonedReadIsRetried) {
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

// kine's revisions sometimes decrease a little.
TEST(EtcdClientTest, WithoutAClusterIdALowerRevisionIsAccepted) {
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

TEST(EtcdClientTest, NoticesAnotherHistory) {
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

TEST(EtcdClientTest, AnUnansweredWriteIsNotRetried) {
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

TEST(EtcdClientTest, AnUnprocessedWriteIsSentToAnotherMember) {
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

TEST(EtcdClientTest, AMemberWithoutALeaderIsReplaced) {
  GrpcServer lonely(refuses(EtcdError::kUnavailable, "etcdserver: no leader"));
  GrpcServer server(answers(test::answer(7)));
  EtcdClient client(options_for({lonely.url(), server.url()}));
  EXPECT_EQ(client.range("/a").revision, 7u);
}

TEST(EtcdClientTest, ALearnerIsReplaced) {
  // Up to 3.5, and from 3.6 on.
  for (const int code : {EtcdError::kUnavailable, EtcdError::kFailedPrecondition}) {
    GrpcServer learner(refuses(code, "etcdserver: rpc not supported for learner"));
    GrpcServer server(answers(test::answer(7)));
    const auto options = options_for({learner.url(), server.url()});
    EXPECT_EQ(EtcdClient(options).range("/a").revision, 7u) << code;
    EXPECT_EQ(EtcdClient(options).put("/a", "x"), 7u) << "a learner does not start writes";
    EtcdOptions alone = options_for({learner.url()});
    alone.request_timeout = std::chrono::minutes(10);
    EXPECT_THROW(EtcdClient(alone).range("/a"), EtcdError) << "immediately";
  }
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

TEST(EtcdClientTest, GivesUpAtTheDeadline) {
  GrpcServer silent([](GrpcCall& call) { call.wait_for_end(); });
  EtcdOptions options = options_for({silent.url()});
  options.request_timeout = std::chrono::seconds(2);
  EtcdClient client(options);
  const rest::TransportError e = failure_of(client);
  EXPECT_EQ(e.kind(), rest::TransportError::Kind::kTimeout);
  EXPECT_THAT(e.what(), HasSubstr(kRangePath));
  EXPECT_TRUE(test::eventually([&] { return silent.open_calls() == 0; })) << "and says so";
}

TEST(EtcdClientTest, ARequestIsCancelledWithItsCaller) {
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

TEST(EtcdClientTest, ReportsUnreachableMembers) {
  EtcdOptions options = options_for({gone(), gone()});
  options.request_timeout = std::chrono::seconds(2);
  EtcdClient client(options);
  const rest::TransportError e = failure_of(client);
  EXPECT_THAT(e.what(), HasSubstr("Connection refused"));
  // The second kind if the deadline passes during a connection attempt.
  EXPECT_THAT(e.kind(), testing::AnyOf(rest::TransportError::Kind::kRefused,
                                       rest::TransportError::Kind::kUnreachable));
}

TEST(EtcdClientTest, AtTheDeadlineReportsTheLastFailure) {
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
        Wrong{"Empty", [](GrpcCall& call) { call.end(); },
              "the response is not a single complete message"},
        Wrong{"Cut",
              [](GrpcCall& call) {
                call.send_raw(grpc::framed(test::answer(7).text()).substr(0, 6));
              },
              "the response is not a single complete message"},
        Wrong{"Two",
              [](GrpcCall& call) {
                call.send(test::answer(7).text());
                call.send(test::answer(8).text());
              },
              "the response is not a single complete message"},
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

TEST(EtcdClientTest, AnotherProtocolIsRecognised) {
  test::HttpServer web([](test::HttpConnection& connection) {
    connection.write("HTTP/1.1 400 Bad Request\r\n\r\n");
    connection.wait_for_close();
  });
  EtcdClient client(options_for({web.url()}));
  const rest::TransportError e = failure_of(client);
  EXPECT_EQ(e.kind(), rest::TransportError::Kind::kProtocol);
  EXPECT_THAT(e.what(), HasSubstr("the server violates HTTP/2"));
}

TEST(EtcdClientTest, AnUnusableMemberIsReplaced) {
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
    if (call.path() == kAuthenticatePath) {
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

/// Issues the tokens "t1", "t2" and so on; accepts only `valid`.
void answer_with_tokens(GrpcCall& call, std::atomic<int>& tokens, const std::string& valid) {
  if (call.path() == kAuthenticatePath) {
    call.send(test::Proto().bytes(2, "t" + std::to_string(++tokens)).text());
  } else if (call.header("token") != valid) {
    call.end(kUnauthenticated, "etcdserver: invalid auth token");
  } else {
    call.send(test::answer(7).text());
  }
}

TEST(EtcdClientTest, SendsATokenAndRenewsIt) {
  std::atomic<int> tokens{0};
  GrpcServer server([&](GrpcCall& call) {
    if (call.path() == kAuthenticatePath) {
      const std::string message = call.message().value_or("");
      EXPECT_EQ(test::bytes_of(message, 1), "ann");
      EXPECT_EQ(test::bytes_of(message, 2), "se\"cret");
    }
    // The first token becomes invalid, as after a restart.
    answer_with_tokens(call, tokens, "t2");
  });
  EtcdClient client(options_of_user({server.url()}, "ann", "se\"cret"));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.range("/a").revision, 7u);
  EXPECT_EQ(tokens, 2);
}

// The members of a cluster do not learn a new token at the same time.
TEST(EtcdClientTest, ATokenMayBeRejectedSeveralTimes) {
  std::atomic<int> tokens{0};
  GrpcServer server([&](GrpcCall& call) { answer_with_tokens(call, tokens, "t3"); });
  EtcdClient client(options_of_user({server.url()}, "ann", "secret"));
  EXPECT_EQ(client.put("/a", "x"), 7u);
  EXPECT_EQ(tokens, 3);
}

TEST(EtcdClientTest, ARequestThatUsersAndRolesOvertakeIsRepeated) {
  for (const std::string user : {"", "ann"}) {
    std::atomic<int> requests{0};
    GrpcServer server([&](GrpcCall& call) {
      if (call.path() == kAuthenticatePath)
        return static_cast<void>(call.send(test::Proto().bytes(2, "t").text()));
      if (++requests % 3 != 0)
        return call.end(EtcdError::kInvalidArgument, "etcdserver: revision of auth store is old");
      call.send(test::answer(7).text());
    });
    EtcdClient client(options_of_user({server.url()}, user, user));
    EXPECT_EQ(client.range("/a").revision, 7u) << user;
    EXPECT_EQ(client.put("/a", "x"), 7u) << user;
    EXPECT_EQ(requests, 6);
  }
}

TEST(EtcdClientTest, AWriteWithoutATokenIsSentToAnotherMember) {
  const auto breaks = [](GrpcCall& call) {
    EXPECT_EQ(call.path(), kAuthenticatePath);
    call.reset(Http2Error::kInternal);
  };
  const auto refuses_tokens = [](GrpcCall& call) {
    EXPECT_EQ(call.path(), kAuthenticatePath);
    call.end(EtcdError::kUnavailable, "etcdserver: request timed out");
  };
  GrpcServer breaking(breaks);
  GrpcServer leaderless(refuses_tokens);
  GrpcServer server([](GrpcCall& call) {
    const bool asks = call.path() == kAuthenticatePath;
    call.send(asks ? test::Proto().bytes(2, "t").text() : test::answer(7).text());
  });
  EtcdClient client(
      options_of_user({breaking.url(), leaderless.url(), server.url()}, "ann", "secret"));
  EXPECT_EQ(client.put("/a", "x"), 7u);
}

TEST(EtcdClientTest, ConcurrentRequestsShareATokenRequest) {
  constexpr int kRequests = 8;
  std::atomic<int> tokens{0};
  std::atomic<bool> answers_tokens{false};
  std::atomic<bool> accepts{false};
  GrpcServer server([&](GrpcCall& call) {
    if (call.path() != kAuthenticatePath)
      return static_cast<void>(call.send(test::answer(7).text()));
    ++tokens;
    EXPECT_TRUE(test::eventually([&] { return answers_tokens.load(); }));
    if (!accepts) return call.end(EtcdError::kInvalidArgument, "etcdserver: authentication failed");
    call.send(test::Proto().bytes(2, "t").text());
  });
  EtcdClient client(options_of_user({server.url()}, "ann", "secret"));
  for (const bool good : {false, true}) {
    answers_tokens = false;
    accepts = good;
    tokens = 0;
    std::atomic<int> begun{0};
    std::atomic<int> answered{0};
    std::vector<std::thread> threads;
    for (int i = 0; i < kRequests; ++i) {
      threads.emplace_back([&] {
        TestThread thread;
        RangeRequest request;
        request.key = "/a";
        ++begun;
        try {
          if (thread.run(client->range(std::move(request))).revision == 7) ++answered;
        } catch (const EtcdError&) {
        }
      });
    }
    EXPECT_TRUE(test::eventually([&] { return begun == kRequests && tokens > 0; }));
    answers_tokens = true;
    for (std::thread& thread : threads) thread.join();
    EXPECT_EQ(answered, good ? kRequests : 0);
    EXPECT_LE(tokens, good ? 1 : kRequests - 1);
  }
}

TEST(EtcdClientTest, ALeaseIsGrantedByTheNextMember) {
  GrpcServer breaking([](GrpcCall& call) { call.reset(Http2Error::kInternal); });
  GrpcServer server(answers(test::answer(7).number(2, 12).number(3, 60)));
  EtcdClient client(options_for({breaking.url(), server.url()}));
  EXPECT_EQ(client.run(client->grant_lease(std::chrono::seconds(60))).id, 12);
}

TEST(EtcdClientTest, ACompactedRevisionIsExpired) {
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

TEST(EtcdClientTest, AMemberWithFewStreamsGetsAnotherConnection) {
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

TEST(EtcdClientTest, AMalformedResponseIsNotQuoted) {
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

TEST(EtcdClientTest, AnOversizedRequestIsNotSent) {
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

// The message of grpc-go for a request larger than --max-request-bytes plus 512 KiB.
TEST(EtcdClientTest, ARequestThatEtcdRejectsUnreadIsTooLarge) {
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
  // Other exhausted resources are not the request's fault.
  is_full = true;
  EXPECT_EQ(status(), 500);
}

TEST(EtcdClientTest, AnOversizedResponseIsRejected) {
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

TEST(EtcdClientTest, FollowsTheListOfMembers) {
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

  // The current member stays in use, at any position in the list.
  second.list({gone(), second.url()});
  client.run(client->sync_members());
  client.range("/a");
  EXPECT_EQ(second.ranges(), 6);
}

TEST(EtcdClientTest, ABackendFollowsTheListOfMembers) {
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
  })) << "repeatedly";
}

TEST(EtcdClientTest, RejectsInvalidOptions) {
  EventLoop loop(1);
  EXPECT_THROW(Client(options_for(std::vector<std::string>()), loop), Error);
  EXPECT_THROW(Client(options_for({"ftp://x"}), loop), Error);
  EtcdOptions half = options_for({"http://127.0.0.1:1"});
  half.cert_file = "/dev/null";
  half.ca_file = "/none";
  EXPECT_THROW(Client(half, loop), Error);
  // Without authorities; the system's must not be used.
  EtcdOptions empty = options_for({"https://127.0.0.1:1"});
  empty.ca_file = "/dev/null";
  EXPECT_THROW(Client(empty, loop), Error);
}

}  // namespace
}  // namespace lookout::apiserver::storage::etcd3
