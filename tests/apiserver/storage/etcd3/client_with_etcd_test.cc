// The etcd client with a real etcd and with the model of one: requests, users, certificates.
#include <gtest/gtest.h>

#include <chrono>
#include <string>
#include <vector>

#include "apiserver/storage/etcd3/client.h"
#include "lookout/apiserver/storage/etcd3.h"
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

class RealEtcdTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::etcd_is_there()) GTEST_SKIP() << "*** no etcd here ***";
  }
};

/// The same with the model of etcd.
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

TEST_P(AnyEtcdTest, ReportsItsVersion) {
  const EtcdOptions options = options_for(test::reach_shared(GetParam()));
  EtcdClient client(options);
  EXPECT_THAT(client.run(client->status()).version, HasSubstr("3."));
  EXPECT_EQ(client.run(client->member_urls()), options.endpoints);
}

TEST_F(RealEtcdTest, AWatchLeavesAnUnusableMember) {
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
  // Watches have tokens as well; a restart of etcd invalidates them.
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
TEST_F(RealEtcdTest, AWatchRenewsAnInvalidToken) {
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
