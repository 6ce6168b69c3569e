// Providers of dubbo services as instances.
#include <gtest/gtest.h>

#include <mutex>

#include "lookout/base/error.h"
#include "lookout/registry/balancer.h"
#include "lookout/registry/dubbo/provider_url.h"
#include "lookout/registry/dubbo/providers.h"
#include "lookout/registry/dubbo/record.h"
#include "registry/dubbo/provider_reader.h"
#include "tests/registry/cluster.h"
#include "tests/support/eventually.h"
#include "tests/support/held.h"
#include "tests/support/matchers.h"

namespace lookout::registry::dubbo {
namespace {

using namespace registry::test;
using testing::Pair;

constexpr const char* kUser = "com.example.User";

/// The key under which dubbo-go announces "HOST?QUERY" (escaped by hand, as url.QueryEscape does).
std::string provider_key(const std::string& escaped_url, const std::string& interface = kUser) {
  return "/dubbo/" + interface + "/providers/" + escaped_url;
}

PodTemplate dubbo_pod(const std::vector<Record>& records) {
  PodTemplate out;
  out.labels = {{"dubbo.io/label", "dubbo.io.provider"}};
  out.annotations = {{"dubbo.io/annotation", encode_records(records)}};
  return out;
}

struct ProviderCase {
  const char* what;
  std::string key;
  std::string service;  // empty: not a provider
  std::string endpoint;
  std::string error;
};
void PrintTo(const ProviderCase& c, std::ostream* out) { *out << c.what; }
class ReadProviderTest : public testing::TestWithParam<ProviderCase> {};

TEST_P(ReadProviderTest, EqualsDubbosInterpretation) {
  std::string error;
  const auto provider = read_provider(GetParam().key, error);
  EXPECT_THAT(error, HasSubstr(GetParam().error));
  EXPECT_EQ(error.empty(), GetParam().error.empty());
  ASSERT_EQ(provider.has_value(), !GetParam().service.empty());
  if (!provider) return;
  EXPECT_EQ(provider->service, GetParam().service);
  EXPECT_THAT(provider->instance.endpoints, ElementsAre(GetParam().endpoint));
}

INSTANTIATE_TEST_SUITE_P(
    , ReadProviderTest,
    testing::Values(
        ProviderCase{"plain", provider_key("dubbo%3A%2F%2F10.0.0.1%3A20000%2FUser"), kUser,
                     "dubbo://10.0.0.1:20000", ""},
        ProviderCase{"group and version",
                     provider_key("tri%3A%2F%2F10.0.0.1%3A1%2FU%3Fgroup%3Dg%26version%3D1.2.0"),
                     "g/com.example.User:1.2.0", "tri://10.0.0.1:1", ""},
        ProviderCase{"version 0.0.0 is none",
                     provider_key("dubbo%3A%2F%2F10.0.0.1%3A1%2FU%3Fversion%3D0.0.0%26group%3D"),
                     kUser, "dubbo://10.0.0.1:1", ""},
        ProviderCase{"IPv6", provider_key("dubbo%3A%2F%2F%5Bfd00%3A%3A1%5D%3A20000%2FUser"), kUser,
                     "dubbo://[fd00::1]:20000", ""},
        ProviderCase{"another root", "/prod/com.example.User/providers/dubbo%3A%2F%2Fh%3A1", kUser,
                     "dubbo://h:1", ""},
        ProviderCase{"a consumer", "/dubbo/com.example.User/consumers/dubbo%3A%2F%2Fh%3A1", "", "",
                     ""},
        ProviderCase{"the folder", "/dubbo/com.example.User/providers", "", "", ""},
        ProviderCase{"an empty folder", "/dubbo/com.example.User/providers/", "", "", ""},
        ProviderCase{"dubbo's word for none", provider_key("empty%3A%2F%2Fh%3A1%2FUser"), "", "",
                     ""},
        ProviderCase{"another key", "plain", "", "", ""},
        ProviderCase{"without a port", provider_key("dubbo%3A%2F%2F10.0.0.1%2FUser"), "", "",
                     "no port"},
        ProviderCase{"port 0", provider_key("dubbo%3A%2F%2F10.0.0.1%3A0%2FUser"), "", "",
                     "its port is 0"},
        ProviderCase{"a parameter that dubbo-go 3 has not escaped",
                     provider_key("tri%3A%2F%2F10.0.0.1%3A1%2FU%3Fversion%3D1%26owner%3Da+b%2Cc"),
                     "com.example.User:1", "tri://10.0.0.1:1", ""},
        ProviderCase{"a host with a space", provider_key("tri%3A%2F%2F10.0.0.1+x%3A1%2FU"), "", "",
                     "not the URL of a provider"},
        ProviderCase{"no URL", provider_key("%3A%2F%2F"), "", "", "not the URL of a provider"},
        ProviderCase{"an interface that is not UTF-8",
                     provider_key("dubbo%3A%2F%2Fh%3A1%2FX", "com.example.X%FF"), "", "",
                     R"("com.example.X\xff" is not the interface of a provider)"},
        ProviderCase{"an interface with a NUL byte",
                     provider_key("dubbo%3A%2F%2Fh%3A1%2FX", "com.example.X%00"), "", "",
                     R"("com.example.X\x00" is not the interface of a provider)"},
        ProviderCase{"a URL that is not UTF-8", provider_key("dubbo%3A%2F%2Fh%3A1%2FU%FF"), "", "",
                     R"("dubbo://h:1/U\xff" is not the URL of a provider)"},
        ProviderCase{"a URL with a NUL byte", provider_key("dubbo%3A%2F%2Fh%3A1%2FU%00"), "", "",
                     "it is not UTF-8 text"},
        ProviderCase{"a host that is not UTF-8", provider_key("dubbo%3A%2F%2Fa%25FF%3A1%2FU"), "",
                     "", "its escapes do not stand for UTF-8 text"},
        ProviderCase{"a zone that is not UTF-8",
                     provider_key("dubbo%3A%2F%2Fh%3A1%2FU%3Fzone%3D%25FF"), "", "",
                     "its escapes do not stand for UTF-8 text"},
        ProviderCase{"a version that is not UTF-8",
                     provider_key("dubbo%3A%2F%2Fh%3A1%2FU%3Fversion%3D1%25C3"), "", "",
                     "its escapes do not stand for UTF-8 text"},
        ProviderCase{"the name of a parameter with a NUL byte",
                     provider_key("dubbo%3A%2F%2Fh%3A1%2FU%3Fa%2500b%3Dc"), "", "",
                     "its escapes do not stand for UTF-8 text"},
        ProviderCase{"a consumer that is not UTF-8",
                     "/dubbo/com.example.X%FF/consumers/dubbo%3A%2F%2Fh%3A1", "", "", ""}));

TEST(DubboProviders, AreInstances) {
  const Cluster cluster;
  auto pod = dubbo_pod(
      {{"/dubbo/com.example.User/providers", ""},
       {provider_key("dubbo%3A%2F%2F10.0.0.1%3A20000%2FUser%3Fweight%3D300%26zone%3Dsh001%26"
                     "methods%3DGet%252CPut%26application%3Duser%2Bcenter"),
        ""},
       {provider_key("tri%3A%2F%2F10.0.0.1%3A20001%2FUser%3Fserialization%3Dprotobuf"), ""}});
  cluster.create_pod("user-1", pod);
  Providers providers(cluster.client());

  EXPECT_THAT(providers.services(), ElementsAre(kUser));
  const auto set = providers.get_service(kUser);
  ASSERT_EQ(set->size(), 1u) << "what a pod says of one service is one instance";
  const ServiceInstance& instance = (*set)[0];
  EXPECT_EQ(instance.id, "10.0.0.1:20000");
  EXPECT_EQ(instance.name, kUser);
  EXPECT_EQ(instance.origin, "default/user-1");
  EXPECT_EQ(instance.zone, "sh001");
  EXPECT_THAT(instance.endpoints, ElementsAre("dubbo://10.0.0.1:20000", "tri://10.0.0.1:20001"));
  EXPECT_THAT(
      instance.metadata,
      UnorderedElementsAre(Pair("weight", "300"), Pair("methods", "Get,Put"),
                           Pair("application", "user center"), Pair("serialization", "protobuf")));
}

TEST(DubboProviders, OfAnEarlierPodOfTheSameNameAreIgnored) {
  const Cluster cluster;
  const auto announced = [](const char* protocol, std::uint16_t port, const char* pid,
                            const char* timestamp) {
    ProviderUrl url{.protocol = protocol, .host = "10.0.0.1", .port = port, .interface = kUser};
    url.parameters = {{"pid", pid}, {"timestamp", timestamp}};
    return Record{url.key(), ""};
  };
  cluster.create_pod("user-1", dubbo_pod({announced("dubbo", 20000, "7", "1591156155"),
                                          announced("tri", 30000, "7", "1591156155"),
                                          announced("dubbo", 20000, "9", "1591156200"),
                                          announced("tri", 30001, "9", "1591156201"),
                                          announced("tri", 30002, "9", "1591156200")}));
  Providers providers(cluster.client());
  const auto set = providers.get_service(kUser);
  ASSERT_EQ(set->size(), 1u);
  EXPECT_THAT((*set)[0].endpoints, ElementsAre("dubbo://10.0.0.1:20000", "tri://10.0.0.1:30001",
                                               "tri://10.0.0.1:30002"));
  EXPECT_THAT((*set)[0].metadata, Contains(Pair("pid", "9")));
}

TEST(DubboProviders, OfAnEarlierRunWithoutTimestampsAreIgnored) {
  const Cluster cluster;
  const auto announced = [](const char* weight) {
    ProviderUrl url{.host = "10.0.0.1", .port = 20000, .interface = kUser};
    url.parameters = {{"weight", weight}};
    return Record{url.key(), ""};
  };
  cluster.create_pod("user-1", dubbo_pod({announced("300"), announced("5")}));
  Providers providers(cluster.client());
  const auto set = providers.get_service(kUser);
  ASSERT_EQ(set->size(), 1u);
  EXPECT_THAT((*set)[0].endpoints, ElementsAre("dubbo://10.0.0.1:20000"));
  EXPECT_THAT((*set)[0].metadata, ElementsAre(Pair("weight", "5"))) << "records are appended";
}

TEST(DubboProviders, OfAnyAddressHaveThatOfTheirPod) {
  const Cluster cluster;
  auto v4 = dubbo_pod({{provider_key("dubbo%3A%2F%2F0.0.0.0%3A20000%2FUser"), ""},
                       {provider_key("tri%3A%2F%2F10.9.9.9%3A20001%2FUser"), ""}});
  v4.ip = "10.0.0.7";
  cluster.create_pod("user-1", v4);
  auto v6 = dubbo_pod({{provider_key("dubbo%3A%2F%2F%5B%3A%3A%5D%3A20000%2FUser"), ""}});
  v6.ip = "fd00::7";
  cluster.create_pod("user-2", v6);
  auto pending = dubbo_pod({{provider_key("dubbo%3A%2F%2F0.0.0.0%3A20000%2FUser"), ""}});
  pending.ip = "";
  cluster.create_pod("user-3", pending);
  Options options;
  options.include_unready = true;
  Providers providers(cluster.client(), options);
  const auto set = providers.get_service(kUser);
  EXPECT_THAT(ids(*set), ElementsAre("10.0.0.7:20000", "[fd00::7]:20000"));
  ASSERT_EQ(set->size(), 2u) << "a pod without an address cannot be called";
  EXPECT_THAT((*set)[0].endpoints, ElementsAre("dubbo://10.0.0.7:20000", "tri://10.9.9.9:20001"));
  EXPECT_THAT((*set)[1].endpoints, ElementsAre("dubbo://[fd00::7]:20000"));
}

TEST(DubboProviders, FindsAnyGroupOrVersionByWildcard) {
  const Cluster cluster;
  const auto announced = [](const char* group, const char* version, std::uint16_t port) {
    ProviderUrl url{.protocol = "dubbo", .host = "10.0.0.1", .port = port, .interface = kUser};
    url.group = group;
    url.version = version;
    return Record{url.key(), ""};
  };
  cluster.create_pod("one", dubbo_pod({announced("", "", 1), announced("a", "", 2)}));
  cluster.create_pod("two", dubbo_pod({announced("a", "1.0", 3)}));
  cluster.create_pod("three", dubbo_pod({announced("b", "1.0", 4)}));
  cluster.create_pod("four", dubbo_pod({announced("b", "2.0", 5)}));
  Providers providers(cluster.client());
  const std::string user = kUser;
  const auto ports = [&](const std::string& service) {
    std::vector<int> out;
    const auto set = providers.get_service(service);
    for (const auto& instance : *set) out.push_back(instance.endpoints.front().port());
    std::ranges::sort(out);
    return out;
  };
  EXPECT_THAT(ports(user), ElementsAre(1));
  EXPECT_THAT(ports("*/" + user), ElementsAre(1));
  EXPECT_THAT(ports("a/" + user + ":*"), ElementsAre(2, 3));
  EXPECT_THAT(ports("*/" + user + ":1.0"), ElementsAre(3, 4));
  EXPECT_THAT(ports(user + ":*"), ElementsAre(1));
  EXPECT_THAT(ports("*/" + user + ":*"), ElementsAre(1, 3, 4, 5))
      << "a pod is one instance, of the last of its services";
  EXPECT_THAT(providers.services(), ElementsAre("a/" + user, "a/" + user + ":1.0",
                                                "b/" + user + ":1.0", "b/" + user + ":2.0", user));

  auto watcher = providers.watch("*/" + user + ":2.0");
  EXPECT_EQ(watcher.next_for(kLong)->size(), 1u);
  cluster.create_pod("five", dubbo_pod({announced("c", "2.0", 6)}));
  EXPECT_EQ(watcher.next_for(kLong)->size(), 2u);
}

TEST(DubboProviders, FindsBothDubboGenerations) {
  const Cluster cluster;
  auto old = dubbo_pod({{provider_key("dubbo%3A%2F%2F10.0.0.1%3A1%2FU"), ""}});
  old.labels = {{"dubbo.io/label", "dubbo.io-value"}};
  cluster.create_pod("user-1", old);
  cluster.create_pod("user-2", dubbo_pod({{provider_key("dubbo%3A%2F%2F10.0.0.2%3A1%2FU"), ""}}));
  Providers providers(cluster.client());
  EXPECT_EQ(providers.get_service(kUser)->size(), 2u);
}

TEST(DubboProviderUrl, IsWrittenLikeGo) {
  ProviderUrl url{.host = "172.17.0.6",
                  .port = 20000,
                  .interface = "com.example.UserProvider",
                  .path = "UserProvider"};
  url.parameters = {{"side", "provider"}};
  EXPECT_EQ(url.key(),
            "/dubbo/com.example.UserProvider/providers/"
            "dubbo%3A%2F%2F172.17.0.6%3A20000%2FUserProvider%3Finterface%3Dcom.example."
            "UserProvider%26side%3Dprovider");
  url.parameters = {{"service.filter", "echo,token"}, {"owner", "a b+c~d"}};
  EXPECT_EQ(url.to_string(),
            "dubbo://172.17.0.6:20000/UserProvider?interface=com.example.UserProvider&"
            "owner=a+b%2Bc~d&service.filter=echo%2Ctoken");
}

TEST(DubboProviderUrl, IsReadBack) {
  ProviderUrl url{.protocol = "tri",
                  .host = "fd00::1",
                  .port = 50051,
                  .interface = "com.example.User",
                  .group = "blue",
                  .version = "1.2"};
  url.parameters = {{"methods", "Get,Put"}, {"empty", ""}, {"name", "\xc3\xbc &=%?#/"}};
  EXPECT_EQ(ProviderUrl::parse(url.to_string()), url);
  EXPECT_EQ(url.service(), "blue/com.example.User:1.2");
  EXPECT_EQ(url.endpoint(), "tri://[fd00::1]:50051");

  std::string error;
  const auto provider = read_provider(url.key(), error);
  ASSERT_TRUE(provider) << error;
  EXPECT_EQ(provider->service, url.service());
}

TEST(DubboProviderUrl, NamesMissingParts) {
  const auto key_of = [](const char* host, std::uint16_t port, const char* interface) {
    return [=] { (void)ProviderUrl{.host = host, .port = port, .interface = interface}.key(); };
  };
  const auto refuses = [](const char* why) {
    return testing::ThrowsMessage<InvalidArgument>(HasSubstr(why));
  };
  EXPECT_THAT([] { (void)ProviderUrl::parse("dubbo://10.0.0.1/User"); }, refuses("no port"));
  EXPECT_THAT(
      [] { (void)ProviderUrl::parse("dubbo://user:secret@10.0.0.1/User?token=secret"); },
      refuses(R"("dubbo://...@10.0.0.1/User" is not the URL of a provider: it has no port)"));
  EXPECT_THAT([] { (void)ProviderUrl::parse("dubbo://10.0.0.1/User?token=p@secret"); },
              refuses(R"("dubbo://..." is not the URL of a provider: it has no port)"));
  EXPECT_THAT(key_of("h", 1, ""), refuses("needs an interface"));
  EXPECT_THAT(key_of("", 1, "I"), refuses("provider of I: it needs a host"));
  EXPECT_THAT(key_of("h", 0, "I"), refuses("provider of I: it needs a port"));
}

TEST(DubboProviders, FeedWatchersAndBalancers) {
  const Cluster cluster;
  cluster.create_pod("user-1", dubbo_pod({{provider_key("dubbo%3A%2F%2F10.0.0.1%3A1%2FU"), ""}}));
  Providers providers(cluster.client());
  auto watcher = providers.watch(kUser);
  ASSERT_TRUE(next_that(watcher, [](const InstanceSet& set) { return set.size() == 1; }));
  const Balancer balancer(providers, kUser, BalancerPolicy::weighted());

  cluster.create_pod("user-2", dubbo_pod({{provider_key("dubbo%3A%2F%2F10.0.0.2%3A1%2FU"), ""}}));
  EXPECT_TRUE(next_that(watcher, [](const InstanceSet& set) { return set.size() == 2; }));
  EXPECT_TRUE(lookout::test::eventually([&] { return balancer.load()->size() == 2; }));

  // An annotation loses a record, a pod becomes unready, a pod is deleted.
  cluster.annotate("user-1", "dubbo.io/annotation", encode_records({}));
  EXPECT_TRUE(next_that(watcher, [](const InstanceSet& set) {
    return set.size() == 1 && set[0].origin == "default/user-2";
  }));
  cluster.set_status("user-2", "10.0.0.2", "Running", false);
  EXPECT_TRUE(next_that(watcher, [](const InstanceSet& set) { return set.empty(); }));
  cluster.set_status("user-2", "10.0.0.2", "Running", true);
  EXPECT_TRUE(next_that(watcher, [](const InstanceSet& set) { return set.size() == 1; }));
  cluster.remove_pod("user-2");
  EXPECT_TRUE(next_that(watcher, [](const InstanceSet& set) { return set.empty(); }));
  EXPECT_FALSE(balancer.load()->freshness().since.time_since_epoch().count() == 0);
}

TEST(DubboProviders, ThatAreMalformedAreReportedAndOthersServed) {
  const Cluster cluster;
  cluster.create_pod("user-1", dubbo_pod({{provider_key("nonsense"), ""},
                                          {provider_key("dubbo%3A%2F%2F10.0.0.1%3A1%2FU"), ""}}));
  std::mutex mutex;
  std::vector<Malformed> reports;
  Options options;
  options.include_unready = true;
  options.on_malformed = [&](const Malformed& malformed) {
    const std::lock_guard lock(mutex);
    reports.push_back(malformed);
  };
  Providers providers(cluster.client(), options);
  EXPECT_EQ(providers.get_service(kUser)->size(), 1u);
  EXPECT_TRUE(lookout::test::eventually([&] {
    const std::lock_guard lock(mutex);
    return !reports.empty();
  }));
  const std::lock_guard lock(mutex);
  ASSERT_EQ(reports.size(), 1u);
  EXPECT_EQ(reports[0].name, "user-1");
  EXPECT_THAT(reports[0].reason, HasSubstr("annotation dubbo.io/annotation: \"nonsense\""));
  EXPECT_EQ(reports[0].resource_version,
            lookout::test::held(cluster.pods().get("user-1")).resource_version());
}

TEST(DubboProviders, WhoseAnnotationBreaksStayAsTheyWere) {
  const Cluster cluster;
  const std::vector<Record> records = {{provider_key("dubbo%3A%2F%2F10.0.0.1%3A1%2FU"), ""}};
  cluster.create_pod("user-1", dubbo_pod(records));
  Providers providers(cluster.client());
  auto watcher = providers.watch(kUser);
  ASSERT_TRUE(next_that(watcher, [](const InstanceSet& set) { return set.size() == 1; }));
  cluster.annotate("user-1", "dubbo.io/annotation", "%%%");
  EXPECT_TRUE(lookout::test::eventually([&] { return providers.stats().malformed == 1; }));
  EXPECT_THAT(providers.services(), ElementsAre(kUser));
  EXPECT_THAT((*providers.latest(kUser))[0].endpoints, ElementsAre("dubbo://10.0.0.1:1"));
  EXPECT_EQ(watcher.next_for(1ms).outcome(), NextOutcome::kTimedOut);

  // It still follows the pod.
  cluster.set_status("user-1", "10.0.0.1", "Running", false);
  EXPECT_TRUE(next_that(watcher, [](const InstanceSet& set) { return set.empty(); }));
  cluster.set_status("user-1", "10.0.0.1", "Running", true);
  EXPECT_TRUE(next_that(watcher, [](const InstanceSet& set) { return set.size() == 1; }));
  cluster.annotate("user-1", "dubbo.io/annotation", encode_records({}));
  EXPECT_TRUE(next_that(watcher, [](const InstanceSet& set) { return set.empty(); }));
  EXPECT_THAT(providers.services(), IsEmpty());
}

TEST(DubboProviders, ThatAreNotUtf8DoNotHideOthers) {
  const Cluster cluster;
  cluster.create_pod(
      "user-1",
      dubbo_pod({{provider_key("tri%3A%2F%2F10.0.0.1%3A1%2FU"), ""},
                 {provider_key("tri%3A%2F%2F10.0.0.1%3A2%2FU%3Fzone%3D%25FF"), ""},
                 {provider_key("tri%3A%2F%2F10.0.0.1%3A3%2FX", "com.example.X%FF"), ""}}));
  Providers providers(cluster.client());
  EXPECT_THAT(providers.services(), ElementsAre(kUser));
  const auto set = providers.get_service(kUser);
  ASSERT_EQ(set->size(), 1u);
  EXPECT_THAT((*set)[0].endpoints, ElementsAre("tri://10.0.0.1:1"));
  EXPECT_EQ((*set)[0].zone, "");
  EXPECT_EQ(providers.stats().malformed, 1u);
}

}  // namespace
}  // namespace lookout::registry::dubbo
