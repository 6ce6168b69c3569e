// Discovery of a server's resources.
#include "lookout/rest/discovery.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "lookout/apiserver/server.h"
#include "tests/rest/client_testing.h"
#include "tests/support/files.h"
#include "tests/support/matchers.h"

namespace lookout::test {
namespace {

using rest::ApiResource;
using rest::Client;
using testing::IsSupersetOf;

enum class Kube { kAggregated, kLegacy };

std::string recorded(const std::string& name) {
  return read_file(testdata("kube-1.36/discovery/" + name));
}

/// The recorded kube-apiserver, with or without aggregated discovery; legacy recordings exist only
/// for the core group and "apps".
HttpServer::Handler kube(Kube kind) {
  return [kind](const HttpRequest& request) -> HttpResponse {
    const bool aggregated =
        kind == Kube::kAggregated &&
        request.header("Accept").find("as=APIGroupDiscoveryList") != std::string::npos;
    if (aggregated && (request.target == "/api" || request.target == "/apis")) {
      return {
          .body = recorded(request.target.substr(1) + "_aggregated.json"),
          .content_type = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"};
    }
    if (request.target == "/api") return {.body = recorded("api.json")};
    if (request.target == "/apis") return {.body = recorded("apis.json")};
    if (request.target == "/api/v1") return {.body = recorded("api_v1.json")};
    if (request.target == "/apis/apps/v1") return {.body = recorded("apis_apps_v1.json")};
    return {.status = 503, .body = status_json(503, "ServiceUnavailable", "no such server")};
  };
}

std::vector<ApiResource> resources_of(Kube kind) {
  HttpServer server(HttpServer::answering(kube(kind)));
  return rest::discover(Client{config_for(server)});
}

const std::vector<ApiResource>& resources() {
  static const std::vector<ApiResource> all = resources_of(Kube::kAggregated);
  return all;
}

/// "deployments.v1.apps", or "pods.v1" for the core group.
std::string full_name(const ApiResource& r) {
  const auto& resource = r.resource;
  return resource.plural + "." + resource.version +
         (resource.group.empty() ? "" : "." + resource.group);
}

std::vector<std::string> full_names(const std::vector<ApiResource>& list) {
  std::vector<std::string> out;
  for (const auto& r : list) out.push_back(full_name(r));
  return out;
}

TEST(DiscoveryTest, NeedsTwoRequestsWithAggregatedDiscovery) {
  std::atomic<int> requests{0};
  HttpServer server(HttpServer::answering([&](const HttpRequest& request) {
    ++requests;
    return kube(Kube::kAggregated)(request);
  }));
  EXPECT_GT(rest::discover(Client{config_for(server)}).size(), 60u);
  EXPECT_EQ(requests, 2);
}

TEST(DiscoveryTest, KeepsTheOrderOfTheServer) {
  const auto names = full_names(resources());
  EXPECT_THAT(
      names,
      IsSupersetOf({"pods.v1", "deployments.v1.apps", "horizontalpodautoscalers.v2.autoscaling",
                    "horizontalpodautoscalers.v1.autoscaling", "crontabs.v1.stable.example.com",
                    "customresourcedefinitions.v1.apiextensions.k8s.io"}));
  EXPECT_THAT(names, Not(Contains(HasSubstr("/")))) << "subresources";
  const auto at = [&](const char* name) { return std::find(names.begin(), names.end(), name); };
  EXPECT_LT(at("pods.v1"), at("deployments.v1.apps")) << "the core comes first";
  EXPECT_LT(at("horizontalpodautoscalers.v2.autoscaling"),
            at("horizontalpodautoscalers.v1.autoscaling"))
      << "the preferred version comes first";
}

TEST(DiscoveryTest, ReturnsAllFieldsOfAResource) {
  const auto* deployments = rest::find_resource(resources(), "deployments");
  ASSERT_NE(deployments, nullptr);
  EXPECT_EQ(deployments->resource, api::Resource("apps", "v1", "Deployment", "deployments", true));
  EXPECT_EQ(deployments->singular, "deployment");
  EXPECT_THAT(deployments->short_names, ElementsAre("deploy"));
  EXPECT_THAT(deployments->categories, ElementsAre("all"));
  EXPECT_TRUE(deployments->has_verb("watch"));
  EXPECT_FALSE(deployments->has_verb("fly"));
  const auto* nodes = rest::find_resource(resources(), "nodes");
  ASSERT_NE(nodes, nullptr);
  EXPECT_FALSE(nodes->resource.namespaced);
}

TEST(DiscoveryTest, LegacyDiscoveryGivesTheSameResult) {
  const auto legacy = resources_of(Kube::kLegacy);
  std::vector<ApiResource> expected;
  for (const auto& r : resources())
    if (r.resource.group.empty() || r.resource.group == "apps") expected.push_back(r);
  EXPECT_THAT(full_names(legacy), testing::UnorderedElementsAreArray(full_names(expected)));
  for (const auto& r : expected) {
    SCOPED_TRACE(full_name(r));
    const auto* same = rest::find_resource(legacy, full_name(r));
    ASSERT_NE(same, nullptr);
    EXPECT_EQ(same->resource, r.resource);
    EXPECT_EQ(same->singular, r.singular);
    EXPECT_EQ(same->short_names, r.short_names);
    EXPECT_THAT(same->verbs, testing::UnorderedElementsAreArray(r.verbs));
    EXPECT_EQ(same->categories, r.categories);
  }
}

TEST(DiscoveryTest, ARejectionIsAnError) {
  HttpServer server(HttpServer::answering([](const HttpRequest&) -> HttpResponse {
    return {.status = 403, .body = status_json(403, "Forbidden", "no")};
  }));
  EXPECT_THROW(rest::discover(Client{config_for(server)}), api::StatusError);
}

TEST(DiscoveryTest, TheCoreGroupIsOptional) {
  HttpServer server(HttpServer::answering([](const HttpRequest& request) -> HttpResponse {
    if (request.target != "/apis")
      return {.status = 404, .body = status_json(404, "NotFound", "no")};
    return {.body = R"({"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"x.test"},)"
                    R"("versions":[{"version":"v1","resources":[{"resource":"things",)"
                    R"("responseKind":{"kind":"Thing"},"scope":"Namespaced"}]}]}]})"};
  }));
  const auto found = rest::discover(Client{config_for(server)});
  ASSERT_EQ(found.size(), 1u);
  EXPECT_EQ(found[0].resource.plural, "things");
}

TEST(DiscoveryTest, AGroupOfAnUnavailableServerIsOmitted) {
  HttpServer server(HttpServer::answering([](const HttpRequest& request) -> HttpResponse {
    if (request.target != "/apis")
      return {.status = 404, .body = status_json(404, "NotFound", "no")};
    const std::string things =
        R"("resources":[{"resource":"things","responseKind":{"kind":"Thing"}}]}]})";
    return {.body = R"({"kind":"APIGroupDiscoveryList","items":[{"metadata":{"name":"down.test"},)"
                    R"("versions":[{"version":"v1","freshness":"Stale",)" +
                    things + R"(,{"metadata":{"name":"up.test"},)" +
                    R"("versions":[{"version":"v1","freshness":"Current",)" + things + "]}"};
  }));
  EXPECT_THAT(full_names(rest::discover(Client{config_for(server)})),
              ElementsAre("things.v1.up.test"));
}

/// As KubeVirt's console and vnc: the aggregated list then has a resource without a kind.
TEST(DiscoveryTest, AResourceThatHasOnlySubresourcesIsOmitted) {
  HttpServer server(HttpServer::answering([](const HttpRequest& request) -> HttpResponse {
    if (request.target != "/apis")
      return {.status = 404, .body = status_json(404, "NotFound", "no")};
    const std::string console = R"(,"subresources":[{"subresource":"console","verbs":["get"],)"
                                R"("responseKind":{"kind":"Console"}}]})";
    return {.body =
                R"({"kind":"APIGroupDiscoveryList","items":[)"
                R"({"metadata":{"name":"subresources.vm.test"},"versions":[{"version":"v1",)"
                R"("resources":[{"resource":"machines","responseKind":)"
                R"({"group":"","version":"","kind":""})" +
                console + R"(,{"resource":"disks")" + console +
                R"(]}]},{"metadata":{"name":"vm.test"},"versions":[{"version":"v1",)"
                R"("resources":[{"resource":"machines","responseKind":{"kind":"Machine"}}]}]}]})"};
  }));
  const auto found = rest::discover(Client{config_for(server)});
  EXPECT_THAT(full_names(found), ElementsAre("machines.v1.vm.test"));
}

TEST(DiscoveryTest, AGroupWithAMalformedResponseIsOmitted) {
  for (const std::string bad : {"html", "nothing", "break", "status", "hang"}) {
    HttpServer server([&](HttpConnection& c) {
      while (const auto request = c.read_request()) {
        if (request->target == "/apis") {
          c.respond({.body = R"({"kind":"APIGroupList","groups":[)"
                             R"({"versions":[{"groupVersion":"bad.test/v1"}]},)"
                             R"({"versions":[{"groupVersion":"good.test/v1"}]}]})"});
        } else if (request->target == "/apis/good.test/v1") {
          c.respond({.body = R"({"kind":"APIResourceList","groupVersion":"good.test/v1",)"
                             R"("resources":[{"name":"goods","kind":"Good"}]})"});
        } else if (request->target != "/apis/bad.test/v1") {
          c.respond({.status = 404, .body = status_json(404, "NotFound", "no")});
        } else if (bad == "html") {
          c.respond({.body = "<html>", .content_type = "text/html"});
        } else if (bad == "nothing") {
          c.respond({});
        } else if (bad == "status") {
          c.respond({.body = status_json(503, "ServiceUnavailable", "no")});
        } else if (bad == "hang") {
          c.wait_for_close();
        } else {
          c.write("HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{");
          return;
        }
      }
    });
    const Client client{config_for(server)};
    const rest::CallOptions call{.timeout = std::chrono::milliseconds(bad == "hang" ? 500 : 30000)};
    EXPECT_THAT(full_names(rest::discover(client, call)), ElementsAre("goods.v1.good.test")) << bad;
  }
}

TEST(DiscoveryTest, AStopIsNotAFailedGroup) {
  std::stop_source stop;
  HttpServer server([&](HttpConnection& c) {
    while (const auto request = c.read_request()) {
      if (request->target == "/apis") {
        c.respond({.body = R"({"kind":"APIGroupList","groups":[)"
                           R"({"versions":[{"groupVersion":"bad.test/v1"}]}]})"});
      } else if (request->target == "/api") {
        c.respond({.body = "{}"});
      } else {
        stop.request_stop();
        c.wait_for_close();
      }
    }
  });
  const Client client{config_for(server)};
  EXPECT_EQ(kind_thrown([&] { rest::discover(client, {.stop = stop.get_token()}); }),
            Kind::kCancelled);
}

TEST(DiscoveryTest, OtherResponsesAreAnErrorOrEmpty) {
  for (const char* body : {"", "[]", "null", "<html>", R"({"kind":)"}) {
    HttpServer server(
        HttpServer::answering([=](const HttpRequest&) { return HttpResponse{.body = body}; }));
    EXPECT_THROW(rest::discover(Client{config_for(server)}), api::DecodeError) << body;
  }
  for (const char* body :
       {"{}", R"({"kind":"APIGroupDiscoveryList","items":7})",
        R"({"kind":"APIGroupDiscoveryList","items":[{"versions":[{"resources":{}}]},3,null]})",
        R"({"kind":"APIGroupList","versions":{},"groups":[{"versions":[{}]}]})"}) {
    HttpServer server(HttpServer::answering([=](const HttpRequest& request) -> HttpResponse {
      if (request.target == "/api" || request.target == "/apis") return {.body = body};
      return {.status = 404, .body = status_json(404, "NotFound", "no")};
    }));
    EXPECT_TRUE(rest::discover(Client{config_for(server)}).empty()) << body;
  }
}

// ------------------------------------------------------------------------------------------- Names

struct Name {
  const char* given;
  const char* found;  // null: not found
};
void PrintTo(const Name& name, std::ostream* out) { *out << name.given; }

class ResourceNameTest : public testing::TestWithParam<Name> {};

INSTANTIATE_TEST_SUITE_P(
    Names, ResourceNameTest,
    testing::Values(Name{"pods", "pods.v1"}, Name{"pod", "pods.v1"}, Name{"po", "pods.v1"},
                    Name{"Pod", "pods.v1"}, Name{"PODS", "pods.v1"}, Name{"pods.v1", "pods.v1"},
                    Name{"deploy", "deployments.v1.apps"},
                    Name{"deployments.apps", "deployments.v1.apps"},
                    Name{"deployment.v1.apps", "deployments.v1.apps"},
                    Name{"hpa", "horizontalpodautoscalers.v2.autoscaling"},
                    Name{"hpa.v1.autoscaling", "horizontalpodautoscalers.v1.autoscaling"},
                    Name{"events", "events.v1"}, Name{"ev", "events.v1"},
                    Name{"events.events.k8s.io", "events.v1.events.k8s.io"},
                    Name{"crontabs.stable.example.com", "crontabs.v1.stable.example.com"},
                    Name{"crontabs.v1.stable.example.com", "crontabs.v1.stable.example.com"},
                    Name{"CronTab", "crontabs.v1.stable.example.com"}, Name{"", nullptr},
                    Name{".", nullptr}, Name{".apps", nullptr}, Name{"pods.apps", nullptr},
                    Name{"pods.v2", nullptr}, Name{"deployments.v2.apps", nullptr},
                    Name{"deployments.app", nullptr}, Name{"podss", nullptr},
                    Name{"pods/status", nullptr}));

TEST_P(ResourceNameTest, IdentifiesOneResource) {
  const auto* found = rest::find_resource(resources(), GetParam().given);
  EXPECT_EQ(found == nullptr ? "nothing" : full_name(*found),
            GetParam().found == nullptr ? "nothing" : GetParam().found);
}

TEST(DiscoveryTest, FindsTheResourceOfAKind) {
  const auto all = resources();
  const auto find = [&](const api::GroupVersionKind& kind) {
    const auto* found = rest::find_resource(all, kind);
    return found == nullptr ? "nothing" : full_name(*found);
  };
  EXPECT_EQ(find({"", "v1", "Pod"}), "pods.v1");
  EXPECT_EQ(find({"autoscaling", "v1", "HorizontalPodAutoscaler"}),
            "horizontalpodautoscalers.v1.autoscaling");
  EXPECT_EQ(find({"apps", "v2", "Deployment"}), "nothing");
  EXPECT_EQ(find({"", "v1", "pods"}), "nothing");
}

// ----------------------------------------------------------------------------- The embedded server

TEST(DiscoveryTest, TheEmbeddedServerEqualsTheRecordedOne) {
  const apiserver::Server server;
  const auto embedded = rest::discover(Client{server.client_config()});
  auto expected = full_names(resources());
  std::erase(expected, "crontabs.v1.stable.example.com");
  EXPECT_THAT(full_names(embedded), IsSupersetOf(expected));
  EXPECT_EQ(rest::find_resource(embedded, "crontabs"), nullptr);
}

TEST(DiscoveryTest, NewDefinitionsAreVisibleAtOnce) {
  const apiserver::Server server;
  const Client client{server.client_config()};
  client
      .resource(api::Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition",
                              "customresourcedefinitions", false))
      .create(api::Object::parse(R"({
        "metadata": {"name": "lamps.home.test"},
        "spec": {"group": "home.test", "scope": "Namespaced",
          "names": {"plural": "lamps", "singular": "lamp", "kind": "Lamp", "shortNames": ["lm"],
                    "categories": ["house"]},
          "versions": [{"name": "v1", "served": true, "storage": true,
            "schema": {"openAPIV3Schema": {"type": "object"}}}]}})"));
  const auto all = rest::discover(client);
  const auto* lamps = rest::find_resource(all, "lm");
  ASSERT_NE(lamps, nullptr);
  EXPECT_EQ(full_name(*lamps), "lamps.v1.home.test");
  EXPECT_THAT(lamps->categories, ElementsAre("house"));
  client.resource(lamps->resource, "default")
      .create(api::Object::parse(
          R"({"kind":"Lamp","apiVersion":"home.test/v1","metadata":{"name":"desk"}})"));
  EXPECT_EQ(client.resource(lamps->resource, "default").get("desk").kind(), "Lamp");
}

}  // namespace
}  // namespace lookout::test
