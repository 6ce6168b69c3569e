// Cluster IPs and node ports: handed out, kept, refused and released.
#include <gtest/gtest.h>

#include <future>
#include <set>
#include <string>
#include <vector>

#include "lookout/apiserver/storage/memory.h"
#include "tests/apiserver/client_fixture.h"
#include "tests/support/bounded_wait.h"
#include "tests/support/matchers.h"

namespace lookout::apiserver {
namespace {

using api::Object;

const api::Resource kAddresses{"networking.k8s.io", "v1", "IPAddress", "ipaddresses", false};

ServerOptions small_range() {
  ServerOptions options;
  options.service_cluster_ip_range = "10.9.0.0/28";  // 14 addresses
  return options;
}

Object service(const std::string& name, const std::string& spec = "") {
  return from_json(R"({"metadata":{"name":")" + name + R"("},"spec":{"selector":{"a":"b"},)" +
                   R"("ports":[{"port":80}])" + spec + "}}");
}

std::string address_of(const Object& object) {
  return std::string(object["spec"]["clusterIP"].as_string());
}

class Services : public ClientTest {
 protected:
  Services() : ClientTest(small_range()) {}

  rest::ResourceClient services() const { return in(kServices); }
  std::set<std::string> taken() const {
    std::set<std::string> out;
    for (const Object& address : all(kAddresses).list().items) out.emplace(address.name());
    return out;
  }
  api::Status refused(const Object& object) const {
    return status_of([&] { services().create(object); });
  }
};

TEST_F(Services, GetAnAddressOfTheirOwn) {
  const Object created = services().create(service("a"));
  const api::Value spec = created["spec"];
  EXPECT_THAT(address_of(created), testing::StartsWith("10.9.0."));
  EXPECT_EQ(spec["clusterIPs"].to_json(), "[\"" + address_of(created) + "\"]");
  EXPECT_EQ(spec["ipFamilies"].to_json(), R"(["IPv4"])");
  EXPECT_EQ(spec["ipFamilyPolicy"].as_string(), "SingleStack");
  EXPECT_EQ(taken(), (std::set<std::string>{address_of(created)}));
  const Object address = all(kAddresses).get(address_of(created));
  EXPECT_EQ(address["spec"]["parentRef"].to_json(),
            R"({"name":"a","namespace":"default","resource":"services"})");
}

TEST_F(Services, WithoutAnAddressNeedNone) {
  const Object headless = services().create(service("h", R"(,"clusterIP":"None")"));
  EXPECT_EQ(headless["spec"]["clusterIPs"].to_json(), R"(["None"])");
  const Object external =
      services().create(from_json(R"({"metadata":{"name":"e"},"spec":{"type":"ExternalName",)"
                                  R"("externalName":"example.com"}})"));
  EXPECT_FALSE(external["spec"]["clusterIP"].exists());
  // Nobody knows what is behind a service that selects nothing.
  const Object any = services().create(
      from_json(R"({"metadata":{"name":"any"},"spec":{"clusterIP":"None","ports":[{"port":1}]}})"));
  EXPECT_EQ(any["spec"]["ipFamilies"].to_json(), R"(["IPv4","IPv6"])");
  EXPECT_EQ(any["spec"]["ipFamilyPolicy"].as_string(), "RequireDualStack");
  EXPECT_THAT(taken(), IsEmpty());
}

TEST_F(Services, HaveAddressesOfOneFamily) {
  const auto message = [&](const char* spec) {
    const std::string text = refused(service("a", spec)).message;
    return text.substr(text.find(": ") + 2);
  };
  const std::string unknown = "Invalid value: \"IPv6\": not configured on this cluster";
  EXPECT_EQ(message(R"(,"ipFamilies":["IPv6"])"), "spec.ipFamilies[0]: " + unknown);
  EXPECT_EQ(message(R"(,"clusterIP":"None","ipFamilies":["IPv6"])"),
            "spec.ipFamilies[0]: " + unknown);
  EXPECT_EQ(message(R"(,"ipFamilyPolicy":"RequireDualStack","ipFamilies":["IPv4","IPv6"])"),
            "[spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": this cluster is not "
            "configured for dual-stack services, spec.ipFamilies[1]: " +
                unknown + "]");
  EXPECT_EQ(message(R"(,"ipFamilyPolicy":"SingleStack","ipFamilies":["IPv4","IPv6"])"),
            "spec.ipFamilyPolicy: Invalid value: \"SingleStack\": must be 'RequireDualStack' or "
            "'PreferDualStack' when multiple IP families are specified");
}

TEST_F(Services, GetTheAddressTheyAskForIfItIsFree) {
  EXPECT_EQ(address_of(services().create(service("a", R"(,"clusterIP":"10.9.0.5")"))), "10.9.0.5");
  EXPECT_THAT(refused(service("b", R"(,"clusterIP":"10.9.0.5")")).message,
              HasSubstr("failed to allocate IP 10.9.0.5: provided IP is already allocated"));
  EXPECT_THAT(refused(service("b", R"(,"clusterIP":"10.8.0.5")")).message,
              HasSubstr("the provided network does not match the current range"));
  EXPECT_THAT(refused(service("b", R"(,"clusterIP":"five")")).message,
              HasSubstr("must be a valid IP address"));
  services().remove("a");
  EXPECT_EQ(address_of(services().create(service("b", R"(,"clusterIP":"10.9.0.5")"))), "10.9.0.5");
}

TEST_F(Services, KeepTheirAddress) {
  const std::string address = address_of(services().create(service("a")));
  // A PUT that leaves it out, and a change to it.
  EXPECT_EQ(address_of(services().update(service("a"))), address);
  const std::string other = address == "10.9.0.14" ? "10.9.0.13" : "10.9.0.14";
  const api::Status status = status_of([&] {
    services().patch("a", rest::PatchType::kMerge, R"({"spec":{"clusterIP":")" + other + R"("}})");
  });
  EXPECT_EQ(status.code, 422);
  EXPECT_THAT(status.message, HasSubstr("may not change once set"));
  EXPECT_EQ(taken(), (std::set<std::string>{address}));
}

TEST_F(Services, ThatAreRefusedTakeNothing) {
  services().create(service("a"));
  const auto before = taken();
  EXPECT_EQ(refused(service("a")).code, 409);
  EXPECT_EQ(refused(from_json(R"({"metadata":{"name":"b"},"spec":{"type":"NodePort",)"
                              R"("ports":[{"port":80,"nodePort":1}]}})"))
                .code,
            422);
  rest::CreateOptions dry;
  dry.dry_run = true;
  EXPECT_NE(address_of(services().create(service("b"), dry)), "");
  EXPECT_EQ(taken(), before);
}

TEST_F(Services, GiveUpTheirAddressWithTheirType) {
  services().create(service("a"));
  const Object external =
      services().patch("a", rest::PatchType::kMerge,
                       R"({"spec":{"type":"ExternalName","externalName":"example.com"}})");
  EXPECT_FALSE(external["spec"]["clusterIP"].exists());
  EXPECT_THAT(taken(), IsEmpty());
  const Object back = services().patch("a", rest::PatchType::kMerge,
                                       R"({"spec":{"type":"ClusterIP","externalName":null}})");
  EXPECT_EQ(taken(), (std::set<std::string>{address_of(back)}));
}

TEST_F(Services, RunOutOfAddresses) {
  // 14, and the first one is the API server's own.
  for (int i = 0; i < 13; ++i) services().create(service("s" + std::to_string(i)));
  EXPECT_EQ(taken().size(), 13u);
  const api::Status status = refused(service("more"));
  EXPECT_EQ(status.code, 500);
  EXPECT_THAT(status.message, HasSubstr("range is full"));
  services().remove_collection();
  EXPECT_THAT(taken(), IsEmpty());
}

TEST_F(Services, GetNodePorts) {
  const Object any = services().create(service("any", R"(,"type":"NodePort")"));
  const std::int64_t port = any["spec"]["ports"][0]["nodePort"].as_int();
  EXPECT_GE(port, 30000);
  EXPECT_LE(port, 32767);
  const auto with_port = [](const std::string& name, int number) {
    return from_json(R"({"metadata":{"name":")" + name + R"("},"spec":{"type":"NodePort",)" +
                     R"("ports":[{"port":80,"nodePort":)" + std::to_string(number) + "}]}}");
  };
  EXPECT_THAT(refused(with_port("b", static_cast<int>(port))).message,
              HasSubstr("provided port is already allocated"));
  EXPECT_THAT(refused(with_port("b", 80)).message,
              HasSubstr("The range of valid ports is 30000-32767"));
  const Object plain =
      services().patch("any", rest::PatchType::kMerge, R"({"spec":{"type":"ClusterIP"}})");
  EXPECT_FALSE(plain["spec"]["ports"][0]["nodePort"].exists());
  const Object again = services().create(with_port("b", static_cast<int>(port)));
  EXPECT_EQ(again["spec"]["ports"][0]["nodePort"].as_int(), port);
}

TEST_F(Services, OfManyClientsAtOnceHaveDifferentAddresses) {
  std::vector<std::future<std::string>> all_of_them;
  for (int i = 0; i < 12; ++i) {
    all_of_them.push_back(std::async(std::launch::async, [this, i] {
      return address_of(services().create(service("s" + std::to_string(i))));
    }));
  }
  std::set<std::string> addresses;
  for (auto& one : all_of_them) addresses.insert(test::get(one));
  EXPECT_EQ(addresses.size(), 12u);
}

TEST(ServicesOfTwoServers, ShareTheRange) {
  ServerOptions options = small_range();
  options.storage = std::make_shared<storage::MemoryBackend>();
  Server one(options);
  Server other(options);
  const rest::Client first{one.client_config()};
  const rest::Client second{other.client_config()};
  std::set<std::string> addresses;
  for (int i = 0; i < 6; ++i) {
    const auto name = "s" + std::to_string(i);
    addresses.insert(address_of(first.resource(kServices, "default").create(service("a" + name))));
    addresses.insert(address_of(second.resource(kServices, "default").create(service("b" + name))));
  }
  EXPECT_EQ(addresses.size(), 12u);
}

TEST(ServiceRange, HasToBeOne) {
  for (const char* range : {"", "10.0.0.0", "10.0.0.0/8", "10.0.0.0/31", "x/24", "10.0.0.0/x"}) {
    ServerOptions options;
    options.service_cluster_ip_range = range;
    EXPECT_THROW(Server{options}, Error) << range;
  }
}

}  // namespace
}  // namespace lookout::apiserver
