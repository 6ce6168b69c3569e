// The etcd client: members that come and go, users, certificates, and answers that are none.
#include "apiserver/storage/etcd3/client.h"

#include <atomic>

#include "lookout/api/status.h"
#include "tests/apiserver/storage/etcd3/etcd_process.h"
#include "tests/apiserver/storage/etcd3/etcd_store_fixture.h"
#include "tests/rest/certificates.h"
#include "tests/support/eventually.h"
#include "tests/support/files.h"
#include "tests/support/http_server.h"
#include "tests/support/matchers.h"

namespace lookout::apiserver::storage::etcd3 {
namespace {

constexpr const char* kRange = R"({"header":{"revision":"7"},"count":"0"})";

std::string gone() { return "http://127.0.0.1:" + std::to_string(test::free_port()); }

test::HttpServer::Script answers(std::string body, int status = 200) {
  return test::HttpServer::answering([body, status](const test::HttpRequest&) {
    return test::HttpResponse{.status = status, .body = body};
  });
}

TEST(EtcdClientTest, GoesOnToAMemberThatIsThereAndStays) {
  std::atomic<int> requests{0};
  test::HttpServer server(test::HttpServer::answering([&](const test::HttpRequest&) {
    ++requests;
    return test::HttpResponse{.body = kRange};
  }));
  EtcdClient client(options_for({gone(), server.url(), gone()}));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.range("/a").revision, 7u);
  EXPECT_EQ(requests, 3);
}

TEST(EtcdClientTest, AReadThatGotNoAnswerIsSentAgain) {
  std::atomic<int> requests{0};
  test::HttpServer server([&](test::HttpConnection& connection) {
    while (connection.read_request()) {
      if (++requests == 1) {
        connection.reset();
        return;
      }
      connection.respond({.body = kRange});
    }
  });
  EtcdClient client(options_for({server.url()}));
  EXPECT_EQ(client.range("/a").revision, 7u);
  EXPECT_EQ(requests, 2);
}

TEST(EtcdClientTest, AReadThatAMemberAbandonsIsSentAgain) {
  for (const int code : {1, 4, 13, 14}) {
    std::atomic<int> requests{0};
    test::HttpServer server(test::HttpServer::answering([&](const test::HttpRequest&) {
      if (++requests > 1) return test::HttpResponse{.body = kRange};
      return test::HttpResponse{
          .status = 500,
          .body = R"({"error":"the member ends","code":)" + std::to_string(code) + "}"};
    }));
    EtcdClient client(options_for({server.url()}));
    EXPECT_EQ(client.range("/a").revision, 7u) << code;
    EXPECT_EQ(requests, 2) << code;
  }
}

TEST(EtcdClientTest, NoticesThatAnotherHistoryIsTold) {
  std::atomic<int> cluster{5};
  std::atomic<int> revision{10};
  test::HttpServer server(test::HttpServer::answering([&](const test::HttpRequest&) {
    return test::HttpResponse{.body = R"({"header":{"cluster_id":")" + std::to_string(cluster) +
                                      R"(","revision":")" + std::to_string(revision) +
                                      R"("},"count":"0"})"};
  }));
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
  std::atomic<int> requests{0};
  const auto cut = [&](test::HttpConnection& connection) {
    if (connection.read_request()) ++requests;
    connection.reset();
  };
  test::HttpServer one(cut);
  test::HttpServer two(cut);
  EtcdClient client(options_for({one.url(), two.url()}));
  EXPECT_THROW(client.run(client->txn(optimistic_put("/a", "x", 0, 0))), rest::TransportError);
  EXPECT_EQ(requests, 1);
}

TEST(EtcdClientTest, AWriteGoesToAnotherMemberIfNobodyTookIt) {
  test::HttpServer server(answers(R"({"header":{"revision":"8"},"succeeded":true})"));
  EtcdClient client(options_for({gone(), gone(), server.url()}));
  const TxnResponse answer = client.run(client->txn(optimistic_put("/a", "x", 0, 0)));
  EXPECT_TRUE(answer.succeeded);
  EXPECT_EQ(answer.revision, 8u);
}

TEST(EtcdClientTest, AMemberWithoutALeaderIsLeft) {
  test::HttpServer lonely(
      answers(R"({"error":"etcdserver: no leader","message":"same","code":14})", 503));
  test::HttpServer server(answers(kRange));
  EtcdClient client(options_for({lonely.url(), server.url()}));
  EXPECT_EQ(client.range("/a").revision, 7u);
}

TEST(EtcdClientTest, GivesUpWhenTheTimeIsOver) {
  test::HttpServer silent([](test::HttpConnection& connection) { connection.wait_for_close(); });
  EtcdOptions options = options_for({silent.url()});
  options.request_timeout = std::chrono::milliseconds(200);
  EtcdClient client(options);
  try {
    client.range("/a");
    FAIL();
  } catch (const rest::TransportError& e) {
    EXPECT_EQ(e.kind(), rest::TransportError::Kind::kTimeout);
    EXPECT_THAT(e.what(), HasSubstr("/v3/kv/range"));
  }
}

TEST(EtcdClientTest, WithNobodyThereSaysSo) {
  EtcdOptions options = options_for({gone(), gone()});
  options.request_timeout = std::chrono::milliseconds(300);
  EtcdClient client(options);
  try {
    client.range("/a");
    FAIL();
  } catch (const rest::TransportError& e) {
    EXPECT_EQ(e.kind(), rest::TransportError::Kind::kRefused);
  }
}

struct Wrong {
  const char* name;
  int status;
  std::string body;
  const char* message;
};
void PrintTo(const Wrong& wrong, std::ostream* out) { *out << wrong.name; }

class WrongAnswerTest : public testing::TestWithParam<Wrong> {};

TEST_P(WrongAnswerTest, IsAClearError) {
  test::HttpServer server(answers(GetParam().body, GetParam().status));
  EtcdClient client(options_for({server.url()}));
  try {
    client.range("/a");
    FAIL();
  } catch (const Error& e) {
    EXPECT_THAT(e.what(), HasSubstr(GetParam().message));
  }
}

INSTANTIATE_TEST_SUITE_P(
    Answers, WrongAnswerTest,
    testing::Values(Wrong{"Html", 200, "<html>hello</html>", "did not answer as an etcd does"},
                    Wrong{"Empty", 200, "", "the answer is not whole"},
                    Wrong{"Cut", 200, R"({"header":{"revision":)", "the answer is not whole"},
                    Wrong{"NoRevision", 200, "{}", "a range without a revision"},
                    Wrong{"NotFound", 404, "404 page not found", "HTTP status 404"},
                    Wrong{"Refused", 400, R"({"error":"etcdserver: key is not provided","code":3})",
                          "key is not provided"}),
    [](const auto& test) { return std::string(test.param.name); });

TEST(EtcdClientTest, ShowsATokenAndAsksForAnotherOneWhenItIsNoLongerGood) {
  std::atomic<int> tokens{0};
  test::HttpServer server(
      test::HttpServer::answering([&](const test::HttpRequest& request) -> test::HttpResponse {
        if (request.target == "/v3/auth/authenticate") {
          EXPECT_EQ(request.body, R"({"name":"ann","password":"se\"cret"})");
          return {.body = R"({"header":{},"token":"t)" + std::to_string(++tokens) + R"("})"};
        }
        // The first one is forgotten, as after a restart.
        if (request.header("Authorization") != "t2")
          return {.status = 401, .body = R"({"error":"etcdserver: invalid auth token","code":16})"};
        return {.body = kRange};
      }));
  EtcdOptions options = options_for({server.url()});
  options.username = "ann";
  options.password = "se\"cret";
  EtcdClient client(options);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(client.range("/a").revision, 7u);
  EXPECT_EQ(tokens, 2);
}

// grpc-gateway v2, which etcd has from 3.6 on, shows errors as a google.rpc.Status.
TEST(EtcdClientTest, UnderstandsTheErrorsOfEtcd36) {
  std::atomic<int> tokens{0};
  std::atomic<int> refusals{0};
  test::HttpServer server(test::HttpServer::answering([&](const test::HttpRequest& request)
                                                          -> test::HttpResponse {
    if (request.target == "/v3/auth/authenticate")
      return {.body = R"({"header":{},"token":"t)" + std::to_string(++tokens) + R"("})"};
    if (request.header("Authorization") != "t2") {
      ++refusals;
      return {.status = 401,
              .body = R"({"code":16, "message":"etcdserver: invalid auth token", "details":[]})"};
    }
    if (request.body.find(R"("revision":"3")") == std::string::npos) return {.body = kRange};
    return {
        .status = 400,
        .body =
            R"({"code":11, "message":"etcdserver: mvcc: required revision has been compacted", "details":[]})"};
  }));
  EtcdOptions options = options_for({server.url()});
  options.username = "ann";
  EtcdClient client(options);
  EXPECT_EQ(client.range("/a").revision, 7u) << "with a new token";
  EXPECT_EQ(tokens, 2);
  EXPECT_EQ(refusals, 1);
  options.watch_cache = false;
  tokens = 1;
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

TEST(EtcdClientTest, AnAnswerThatIsCutIsNotQuoted) {
  test::HttpServer server(
      answers(R"({"header":{"revision":"7"},"kvs":[{"key":"YQ==","value":"c2VjcmV0)"));
  EtcdClient client(options_for({server.url()}));
  try {
    client.range("/a");
    FAIL();
  } catch (const api::DecodeError& e) {
    EXPECT_THAT(e.what(), testing::Not(HasSubstr("c2Vj")));
  }
}

TEST(EtcdClientTest, RefusesOptionsThatMakeNoSense) {
  EventLoop loop(1);
  EXPECT_THROW(Client(options_for({}), loop), Error);
  EXPECT_THROW(Client(options_for({"ftp://x"}), loop), Error);
  EtcdOptions half = options_for({"http://127.0.0.1:1"});
  half.cert_file = "/dev/null";
  half.ca_file = "/none";
  EXPECT_THROW(Client(half, loop), Error);
}

// --- with a real one

class RealEtcdTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::etcd_is_there()) GTEST_SKIP() << "*** no etcd here ***";
  }
};

TEST_F(RealEtcdTest, PutsRangesDeletesAndCompacts) {
  EtcdClient client(options_for(test::shared_etcd().endpoints()));
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

TEST_F(RealEtcdTest, LeasesEndWithTheirKeys) {
  EtcdClient client(options_for(test::shared_etcd().endpoints()));
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

TEST_F(RealEtcdTest, SaysWhatItIs) {
  EtcdClient client(options_for(test::shared_etcd().endpoints()));
  EXPECT_THAT(client.run(client->status()).version, HasSubstr("3."));
  EXPECT_EQ(client.run(client->member_urls()), test::shared_etcd().endpoints());
}

TEST_F(RealEtcdTest, UsersAndPasswords) {
  test::EtcdCluster etcd;
  etcd.etcdctl({"user", "add", "root:pass word"});
  etcd.etcdctl({"user", "grant-role", "root", "root"});
  etcd.etcdctl({"auth", "enable"});
  EtcdClient nobody(options_for(etcd.endpoints()));
  EXPECT_THROW(nobody.range("/a"), EtcdError);
  EtcdOptions options = options_for(etcd.endpoints());
  options.username = "root";
  options.password = "wrong";
  EtcdClient wrong(options);
  EXPECT_THROW(wrong.range("/a"), EtcdError);
  options.password = "pass word";
  EtcdClient root(options);
  const Revision revision = root.put("/a", "x");
  EXPECT_EQ(root.range("/a").revision, revision);
  // Watches show a token, too; and tokens are forgotten when etcd starts again.
  options.future_wait = std::chrono::seconds(30);  // etcd takes its time over passwords
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

// A restarted etcd knows no tokens. It refuses them within the stream of a watch.
TEST_F(RealEtcdTest, AWatchWhoseTokenIsForgottenGoesOnWithAnotherOne) {
  test::EtcdCluster etcd;
  etcd.etcdctl({"user", "add", "root:pw"});
  etcd.etcdctl({"user", "grant-role", "root", "root"});
  etcd.etcdctl({"auth", "enable"});
  EtcdOptions options = options_for(etcd.endpoints());
  options.username = "root";
  options.password = "pw";
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
    // Over HTTP/2 watches share a connection with everything else.
    EtcdBackend backend(options);
    StorageClient pods(backend.resource("pods"));
    auto watch = pods.watch("", {});
    pods.create("n/a", pod("a"));
    pods.remove("n/a");
    EXPECT_EQ(watch->take(2), (std::vector<std::string>{"ADDED n/a", "DELETED n/a"}));
  }
  {
    // A certificate that nobody takes, until another one is put in its place.
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
  EtcdOptions anonymous = options;
  anonymous.cert_file.clear();
  anonymous.key_file.clear();
  anonymous.request_timeout = std::chrono::milliseconds(2000);
  EtcdClient nobody(anonymous);
  EXPECT_THROW(nobody.range("/a"), rest::TransportError);
}

}  // namespace
}  // namespace lookout::apiserver::storage::etcd3
