// The client's requests: methods, paths, queries, headers and bodies.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <mutex>
#include <vector>

#include "lookout/base/prometheus_text.h"
#include "lookout/k8s/apps/v1.h"
#include "lookout/k8s/authentication/v1.h"
#include "lookout/k8s/core/v1.h"
#include "lookout/rest/subresources.h"
#include "lookout/version.h"
#include "tests/rest/client_testing.h"
#include "tests/support/eventually.h"
#include "tests/support/matchers.h"

namespace lookout::test {
namespace {

using k8s::core::v1::Namespace;
using k8s::core::v1::Pod;

/// Records every request, and sends a response that is valid as an object and as a list.
class ClientRequestsTest : public testing::Test {
 protected:
  rest::Config config() const { return config_for(server_); }

  HttpRequest last() {
    const std::lock_guard lock(mutex_);
    return requests_.back();
  }
  std::size_t count() {
    const std::lock_guard lock(mutex_);
    return requests_.size();
  }

 private:
  std::mutex mutex_;
  std::vector<HttpRequest> requests_;

 protected:
  HttpServer server_{HttpServer::answering([this](const HttpRequest& request) -> HttpResponse {
    const std::lock_guard lock(mutex_);
    requests_.push_back(request);
    return {.body = list_json({})};
  })};
};

struct RequestCase {
  const char* name;
  std::function<void(const rest::Client&)> call;
  const char* method;
  const char* target;
  const char* content_type = "";
  std::string body = {};
};

RequestCase deletion(const char* name, rest::PropagationPolicy policy,
                     const std::string& policy_text) {
  return {
      name,
      [policy](const rest::Client& c) {
        c.resource<Pod>("shop").remove("web-1", {.propagation_policy = policy});
      },
      "DELETE",
      "/api/v1/namespaces/shop/pods/web-1",
      "application/json",
      R"({"kind":"DeleteOptions","apiVersion":"v1","propagationPolicy":")" + policy_text + R"("})"};
}

void PrintTo(const RequestCase& c, std::ostream* out) { *out << c.name; }

class EveryVerbTest : public ClientRequestsTest, public testing::WithParamInterface<RequestCase> {};

TEST_P(EveryVerbTest, SendsWhatTheApiServerExpects) {
  const rest::Client client{config()};
  GetParam().call(client);
  const HttpRequest request = last();
  EXPECT_EQ(request.method, GetParam().method);
  EXPECT_EQ(request.target, GetParam().target);
  EXPECT_EQ(request.header("Content-Type"), GetParam().content_type);
  EXPECT_EQ(request.body, GetParam().body);
  const bool protobuf = request.method == "GET" && request.target.find("/apis/stable.") != 0;
  EXPECT_EQ(request.header("Accept"),
            protobuf ? "application/vnd.kubernetes.protobuf,application/json" : "application/json");
  EXPECT_EQ(request.header("Host"), "127.0.0.1:" + std::to_string(server_.port()));
  EXPECT_EQ(request.header("Expect"), "");
}

const api::Object kPod = api::Object::parse(pod_json("web-1", "7"));
const api::Object kNode =
    api::Object::parse(R"({"apiVersion":"v1","kind":"Namespace","metadata":{"name":"shop"}})");
const api::Resource kCronTabs("stable.example.com", "v1", "CronTab", "crontabs", true);

rest::ListOptions all_list_options() {
  rest::ListOptions options;
  options.label_selector = "app in (web,api),!canary";
  options.field_selector = "status.phase=Running";
  options.resource_version = "42";
  options.resource_version_match = "NotOlderThan";
  options.limit = 500;
  options.continue_token = "a+b/c==&d";
  options.timeout = std::chrono::seconds(30);
  options.allow_watch_bookmarks = true;
  options.send_initial_events = false;
  return options;
}

#define ALL_LIST_OPTIONS                                                                      \
  "labelSelector=app%20in%20%28web%2Capi%29%2C%21canary&fieldSelector=status.phase%3DRunning" \
  "&resourceVersion=42&resourceVersionMatch=NotOlderThan&limit=500"                           \
  "&continue=a%2Bb%2Fc%3D%3D%26d&timeoutSeconds=30&allowWatchBookmarks=true"                  \
  "&sendInitialEvents=false"

const RequestCase kRequests[] = {
    {"Get", [](const rest::Client& c) { c.resource<Pod>("shop").get("web-1"); }, "GET",
     "/api/v1/namespaces/shop/pods/web-1"},
    {"GetFromCache",
     [](const rest::Client& c) { c.resource<Pod>("shop").get("web-1", {.resource_version = "0"}); },
     "GET", "/api/v1/namespaces/shop/pods/web-1?resourceVersion=0"},
    {"GetClusterScoped", [](const rest::Client& c) { c.resource<Namespace>().get("shop"); }, "GET",
     "/api/v1/namespaces/shop"},
    {"GetClusterScopedInANamespace",
     [](const rest::Client& c) { c.resource<Namespace>("ignored").get("shop"); }, "GET",
     "/api/v1/namespaces/shop"},
    {"GetInAGroup",
     [](const rest::Client& c) { c.resource<k8s::apps::v1::Deployment>("shop").get("web"); }, "GET",
     "/apis/apps/v1/namespaces/shop/deployments/web"},
    {"GetCustomResource", [](const rest::Client& c) { c.resource(kCronTabs, "shop").get("daily"); },
     "GET", "/apis/stable.example.com/v1/namespaces/shop/crontabs/daily"},
    {"GetOddName", [](const rest::Client& c) { c.resource<Pod>("shop").get("a:b c?d#e&ü"); }, "GET",
     "/api/v1/namespaces/shop/pods/a%3Ab%20c%3Fd%23e%26%C3%BC"},
    {"List", [](const rest::Client& c) { c.resource<Pod>("shop").list(); }, "GET",
     "/api/v1/namespaces/shop/pods"},
    {"ListAllNamespaces", [](const rest::Client& c) { c.resource<Pod>().list(); }, "GET",
     "/api/v1/pods"},
    {"ListClusterScoped", [](const rest::Client& c) { c.resource<Namespace>().list(); }, "GET",
     "/api/v1/namespaces"},
    {"ListWithEveryOption",
     [](const rest::Client& c) { c.resource<Pod>("shop").list(all_list_options()); }, "GET",
     "/api/v1/namespaces/shop/pods?" ALL_LIST_OPTIONS},
    {"Watch", [](const rest::Client& c) { c.resource<Pod>("shop").dynamic().watch(); }, "GET",
     "/api/v1/namespaces/shop/pods?watch=true"},
    {"WatchWithEveryOption",
     [](const rest::Client& c) { c.resource<Pod>().dynamic().watch(all_list_options()); }, "GET",
     "/api/v1/pods?watch=true&" ALL_LIST_OPTIONS},
    {"WatchWithInitialEvents",
     [](const rest::Client& c) {
       c.resource<Pod>().dynamic().watch({.send_initial_events = true});
     },
     "GET", "/api/v1/pods?watch=true&sendInitialEvents=true"},
    {"Create", [](const rest::Client& c) { c.resource<Pod>("shop").create(kPod); }, "POST",
     "/api/v1/namespaces/shop/pods", "application/json", kPod.to_json()},
    {"CreateInTheNamespaceOfTheObject",
     [](const rest::Client& c) { c.resource<Pod>().create(kPod); }, "POST",
     "/api/v1/namespaces/shop/pods", "application/json", kPod.to_json()},
    {"CreateClusterScoped", [](const rest::Client& c) { c.resource<Namespace>().create(kNode); },
     "POST", "/api/v1/namespaces", "application/json", kNode.to_json()},
    {"CreateWithEveryOption",
     [](const rest::Client& c) {
       c.resource<Pod>("shop").create(
           kPod, {.dry_run = true, .field_manager = "me & you", .field_validation = "Strict"});
     },
     "POST",
     "/api/v1/namespaces/shop/pods?dryRun=All&fieldManager=me%20%26%20you&fieldValidation=Strict",
     "application/json", kPod.to_json()},
    {"Update", [](const rest::Client& c) { c.resource<Pod>("shop").update(Pod(kPod)); }, "PUT",
     "/api/v1/namespaces/shop/pods/web-1", "application/json", kPod.to_json()},
    {"UpdateStatus",
     [](const rest::Client& c) { c.resource<Pod>("shop").update_status(Pod(kPod)); }, "PUT",
     "/api/v1/namespaces/shop/pods/web-1/status", "application/json", kPod.to_json()},
    {"UpdateWithEveryOption",
     [](const rest::Client& c) {
       c.resource<Pod>().update(
           Pod(kPod), {.dry_run = true, .field_manager = "me", .field_validation = "Warn"},
           "scale");
     },
     "PUT",
     "/api/v1/namespaces/shop/pods/web-1/scale?dryRun=All&fieldManager=me&fieldValidation=Warn",
     "application/json", kPod.to_json()},
    {"PatchJson",
     [](const rest::Client& c) {
       c.resource<Pod>("shop").patch("web-1", rest::PatchType::kJson, "[]");
     },
     "PATCH", "/api/v1/namespaces/shop/pods/web-1", "application/json-patch+json", "[]"},
    {"PatchMerge",
     [](const rest::Client& c) {
       c.resource<Pod>("shop").patch("web-1", rest::PatchType::kMerge, "{}");
     },
     "PATCH", "/api/v1/namespaces/shop/pods/web-1", "application/merge-patch+json", "{}"},
    {"PatchStrategicMerge",
     [](const rest::Client& c) {
       c.resource<Pod>("shop").patch("web-1", rest::PatchType::kStrategicMerge, "{}", {}, "status");
     },
     "PATCH", "/api/v1/namespaces/shop/pods/web-1/status", "application/strategic-merge-patch+json",
     "{}"},
    {"PatchApplyWithEveryOption",
     [](const rest::Client& c) {
       c.resource<Pod>("shop").patch(
           "web-1", rest::PatchType::kApply, "kind: Pod\n",
           {.dry_run = true, .field_manager = "me", .field_validation = "Ignore", .force = true});
     },
     "PATCH",
     "/api/v1/namespaces/shop/pods/"
     "web-1?dryRun=All&fieldManager=me&fieldValidation=Ignore&force=true",
     "application/apply-patch+yaml", "kind: Pod\n"},
    {"PatchApplyOfAStatus",
     [](const rest::Client& c) {
       c.resource<Pod>("shop").patch("web-1", rest::PatchType::kApply, "kind: Pod\n",
                                     {.dry_run = true, .field_manager = "me"}, "status");
     },
     "PATCH", "/api/v1/namespaces/shop/pods/web-1/status?dryRun=All&fieldManager=me",
     "application/apply-patch+yaml", "kind: Pod\n"},
    {"PatchApplyOfAScale",
     [](const rest::Client& c) {
       c.resource<Pod>("shop").patch("web", rest::PatchType::kApply, "kind: Scale\n",
                                     {.field_manager = "me"}, "scale");
     },
     "PATCH", "/api/v1/namespaces/shop/pods/web/scale?fieldManager=me",
     "application/apply-patch+yaml", "kind: Scale\n"},
    {"Apply",
     [](const rest::Client& c) {
       c.resource<Pod>("shop").apply(kPod, {.field_manager = "me", .force = true});
     },
     "PATCH", "/api/v1/namespaces/shop/pods/web-1?fieldManager=me&force=true",
     "application/apply-patch+yaml", kPod.to_json()},
    {"Delete", [](const rest::Client& c) { c.resource<Pod>("shop").remove("web-1"); }, "DELETE",
     "/api/v1/namespaces/shop/pods/web-1", "application/json",
     R"({"kind":"DeleteOptions","apiVersion":"v1"})"},
    {"DeleteWithEveryOption",
     [](const rest::Client& c) {
       c.resource<Pod>("shop").remove("web-1",
                                      {.grace_period_seconds = 0,
                                       .precondition_uid = "a\"b",
                                       .precondition_resource_version = "7",
                                       .propagation_policy = rest::PropagationPolicy::kForeground,
                                       .dry_run = true});
     },
     "DELETE", "/api/v1/namespaces/shop/pods/web-1", "application/json",
     R"({"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":0,)"
     R"("preconditions":{"uid":"a\"b","resourceVersion":"7"},"propagationPolicy":"Foreground",)"
     R"("dryRun":["All"]})"},
    deletion("DeleteOrphaning", rest::PropagationPolicy::kOrphan, "Orphan"),
    deletion("DeleteInTheBackground", rest::PropagationPolicy::kBackground, "Background"),
    {"DeleteCollection",
     [](const rest::Client& c) {
       c.resource<Pod>("shop").remove_collection({.grace_period_seconds = 5},
                                                 {.label_selector = "app=web", .limit = 10});
     },
     "DELETE", "/api/v1/namespaces/shop/pods?labelSelector=app%3Dweb&limit=10", "application/json",
     R"({"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":5})"},
};

INSTANTIATE_TEST_SUITE_P(Requests, EveryVerbTest, testing::ValuesIn(kRequests),
                         [](const auto& test) { return test.param.name; });

TEST_F(ClientRequestsTest, WriteDefaultsFillUnsetOptions) {
  const rest::Client client =
      rest::Client(config()).with_write_defaults({.field_manager = "me", .dry_run = true});
  const auto pods =
      client.resource<Pod>("shop").with_write_defaults({.field_validation = "Strict"});
  const std::string all = "?dryRun=All&fieldManager=me&fieldValidation=Strict";
  pods.create(Pod(kPod));
  EXPECT_EQ(last().target, "/api/v1/namespaces/shop/pods" + all);
  pods.update(Pod(kPod));
  EXPECT_EQ(last().target, "/api/v1/namespaces/shop/pods/web-1" + all);
  pods.patch("web-1", rest::PatchType::kMerge, "{}", {.field_manager = "other"});
  EXPECT_EQ(last().target,
            "/api/v1/namespaces/shop/pods/web-1?dryRun=All&fieldManager=other"
            "&fieldValidation=Strict");
  pods.apply(Pod(kPod), {.force = true});
  EXPECT_EQ(last().target, "/api/v1/namespaces/shop/pods/web-1" + all + "&force=true");
  pods.remove("web-1");
  EXPECT_THAT(last().body, HasSubstr(R"("dryRun":["All"])"));
  pods.remove_collection();
  EXPECT_THAT(last().body, HasSubstr(R"("dryRun":["All"])"));
  rest::evict(pods, "web-1");
  EXPECT_EQ(last().target, "/api/v1/namespaces/shop/pods/web-1/eviction" + all);
  // Reads have none of them.
  pods.get("web-1");
  EXPECT_EQ(last().target, "/api/v1/namespaces/shop/pods/web-1");
}

TEST_F(ClientRequestsTest, RequestsMetadataOfOneObject) {
  const rest::Client client{config()};
  client.resource<Pod>("shop").get("web-1", {.metadata_only = true});
  EXPECT_EQ(last().target, "/api/v1/namespaces/shop/pods/web-1");
  EXPECT_EQ(last().header("Accept"),
            "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,"
            "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io,application/json");
}

TEST_F(ClientRequestsTest, CountsRequests) {
  const rest::Client client{config()};
  client.resource<Pod>("shop").get("web-1");
  client.resource<Pod>("shop").list();
  client.resource<Pod>("shop").remove("web-1");
  std::vector<metrics::Sample> samples;
  client.metrics()->collect(samples);
  const std::string text = metrics::prometheus_text(samples);
  const std::string host = "host=\"127.0.0.1:" + std::to_string(server_.port()) + "\"";
  EXPECT_THAT(
      text, HasSubstr("rest_client_requests_total{code=\"200\"," + host + ",method=\"GET\"} 2\n"));
  EXPECT_THAT(text, HasSubstr("rest_client_requests_total{code=\"200\"," + host +
                              ",method=\"DELETE\"} 1\n"));
  EXPECT_THAT(
      text, HasSubstr("rest_client_request_duration_seconds_count{" + host + ",verb=\"GET\"} 2\n"));
}

TEST_F(ClientRequestsTest, CountsRequestsWithoutResponse) {
  server_.stop_listening();
  const rest::Client client{config()};
  EXPECT_THROW(client.get_raw("/version"), rest::TransportError);
  std::vector<metrics::Sample> samples;
  client.metrics()->collect(samples);
  EXPECT_THAT(metrics::prometheus_text(samples), HasSubstr("{code=\"<error>\","));
}

TEST_F(ClientRequestsTest, RawPathsAreSentUnchanged) {
  const rest::Client client{config()};
  client.get_raw("/readyz?verbose&exclude=etcd", {}, "text/plain");
  EXPECT_EQ(last().target, "/readyz?verbose&exclude=etcd");
  EXPECT_EQ(last().header("Accept"), "text/plain");
  client.get_raw("/version");
  EXPECT_EQ(last().header("Accept"), "application/json, */*");
}

TEST_F(ClientRequestsTest, RawPathsMustBePaths) {
  const rest::Client client{config()};
  for (const char* path : {"", "version", "@example.test/", ".example.test/x", "/a b", "/a\r\nX: y",
                           "/a\nb", "/\x7f", "/a#b"}) {
    EXPECT_THROW(client.get_raw(path), InvalidArgument) << path;
  }
  EXPECT_THROW(client.get_raw("/version", {}, "text/plain\r\nX-Evil: 1"), InvalidArgument);
  EXPECT_EQ(count(), 0u);
}

TEST_F(ClientRequestsTest, ThePathOfTheServerUrlIsAPrefix) {
  rest::Config prefixed = config();
  prefixed.server += "/k8s/clusters/c-1/";
  const rest::Client client{prefixed};
  client.resource<Pod>("shop").list();
  EXPECT_EQ(last().target, "/k8s/clusters/c-1/api/v1/namespaces/shop/pods");
  client.get_raw("/version");
  EXPECT_EQ(last().target, "/k8s/clusters/c-1/version");
}

TEST_F(ClientRequestsTest, RejectsInvalidPathSegments) {
  const rest::Client client{config()};
  for (const char* name : {".", "..", "a/b", "/", "a%2fb", "../../nodes", ""}) {
    SCOPED_TRACE(name);
    const auto pods = client.resource<Pod>("shop");
    EXPECT_THROW(pods.get(name), InvalidArgument);
    EXPECT_THROW(pods.remove(name), InvalidArgument);
    EXPECT_THROW(pods.patch(name, rest::PatchType::kMerge, "{}"), InvalidArgument);
    if (*name == '\0') continue;
    EXPECT_THROW(client.resource<Pod>(name).list(), InvalidArgument);
    EXPECT_THROW(client.resource(api::Resource("", "v1", "X", name, true), "shop").list(),
                 InvalidArgument);
    EXPECT_THROW(client.resource(api::Resource("", name, "X", "xs", true), "shop").list(),
                 InvalidArgument);
    EXPECT_THROW(client.resource(api::Resource(name, "v1", "X", "xs", true), "shop").list(),
                 InvalidArgument);
  }
  EXPECT_THROW(client.resource<Pod>("shop").update(Pod(kPod), {}, "../other"), InvalidArgument);
  EXPECT_THROW(client.resource<Pod>("shop").update(Pod(kPod), {}, "status?force=true"),
               InvalidArgument);
  EXPECT_THROW(client.resource<Pod>("shop").update(Pod(api::Object::parse("{}"))), InvalidArgument);
  EXPECT_EQ(count(), 0u);
}

// Without a namespace, the path would be that of another resource.
TEST_F(ClientRequestsTest, ANamespacedObjectNeedsANamespace) {
  const rest::Client client{config()};
  const api::Object nowhere =
      api::Object::parse(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-1"}})");
  const auto pods = client.resource<Pod>();
  EXPECT_THROW(pods.get("web-1"), InvalidArgument);
  EXPECT_THROW(pods.remove("web-1"), InvalidArgument);
  EXPECT_THROW(pods.patch("web-1", rest::PatchType::kMerge, "{}"), InvalidArgument);
  EXPECT_THROW(pods.create(nowhere), InvalidArgument);
  EXPECT_THROW(pods.update(Pod(nowhere)), InvalidArgument);
  EXPECT_EQ(count(), 0u);
}

TEST_F(ClientRequestsTest, SubresourcesMayBePaths) {
  const rest::Client client{config()};
  client.resource<Pod>("shop").update(Pod(kPod), {}, "proxy/metrics");
  EXPECT_EQ(last().target, "/api/v1/namespaces/shop/pods/web-1/proxy/metrics");
}

TEST_F(ClientRequestsTest, ATokenIsCreatedBelowItsServiceAccount) {
  const rest::Client client{config()};
  rest::TokenOptions options;
  options.audiences = {"vault"};
  options.lifetime = std::chrono::minutes(10);
  const auto accounts = client.resource<k8s::core::v1::ServiceAccount>("shop");
  rest::create_token(accounts.dynamic(), "robot", options);
  EXPECT_EQ(last().method, "POST");
  EXPECT_EQ(last().target, "/api/v1/namespaces/shop/serviceaccounts/robot/token");
  for (const char* part : {R"("kind":"TokenRequest")", R"("audiences":["vault"])",
                           R"("expirationSeconds":600)", R"("name":"robot")"}) {
    EXPECT_THAT(last().body, testing::HasSubstr(part));
  }
}

TEST_F(ClientRequestsTest, SendsTheUserAgent) {
  rest::Config named = config();
  rest::Client{named}.get_raw("/version");
  EXPECT_THAT(last().header("User-Agent"),
              testing::StartsWith("rest_client_test/" + std::string(kVersion) + " (linux/"));
  named.user_agent = "my-controller/2.0";
  rest::Client{named}.get_raw("/version");
  EXPECT_EQ(last().header("User-Agent"), "my-controller/2.0");
}

TEST_F(ClientRequestsTest, EachHeaderIsSentOnce) {
  const rest::Client client{config()};
  const auto pods = client.resource<Pod>("shop");
  pods.list();
  EXPECT_THAT(last().all("User-Agent"), ElementsAre(client.config().user_agent));
  EXPECT_THAT(last().all("Accept-Encoding"), ElementsAre("gzip"));
  for (const std::size_t size : {10u, 2000u, 2'000'000u}) {
    pods.patch("web-1", rest::PatchType::kMerge, R"({"x":")" + std::string(size, 'x') + R"("})");
    EXPECT_THAT(last().all("User-Agent"), ElementsAre(client.config().user_agent));
    EXPECT_THAT(last().all("Accept-Encoding"), ElementsAre("gzip"));
    EXPECT_THAT(last().all("Content-Length"), ElementsAre(std::to_string(last().body.size())));
    EXPECT_THAT(last().all("Expect"), ElementsAre()) << size;
  }
  rest::Config plain = config();
  plain.disable_compression = true;
  rest::Client{plain}.resource<Pod>("shop").list();
  EXPECT_THAT(last().all("Accept-Encoding"), ElementsAre());
}

TEST_F(ClientRequestsTest, TargetsAreSentUnchanged) {
  for (const char* prefix : {"", "/k8s/clusters/c-1"}) {
    rest::Config below = config();
    below.server += prefix;
    const rest::Client client{below};
    for (const char* target :
         {"/version", "/", "/a?", "/a?b", "/a//b", "/a?b=c&d=/../e", "/a%2Fb%2fc?d=%C3%A9",
          "/a+b;c=d,e:f@g!$'()*~?h=i+j?k[]", "/.well-known/openid-configuration"}) {
      client.get_raw(target);
      EXPECT_EQ(last().target, std::string(prefix) + target);
    }
  }
}

TEST_F(ClientRequestsTest, CredentialsAreSentInTheAuthorizationHeader) {
  rest::Client{config()}.get_raw("/version");
  EXPECT_THAT(last().all("Authorization"), ElementsAre());

  rest::Config token = config();
  token.bearer_token = "secret";
  rest::Client{token}.get_raw("/version");
  EXPECT_THAT(last().all("Authorization"), ElementsAre("Bearer secret"));

  rest::Config basic = config();
  basic.username = "admin";
  basic.password = "pa:ss";
  rest::Client{basic}.get_raw("/version");
  EXPECT_THAT(last().all("Authorization"), ElementsAre("Basic YWRtaW46cGE6c3M="));
}

TEST_F(ClientRequestsTest, ImpersonationHeadersAreSentWithEveryValue) {
  rest::Config as = config();
  as.as.user = "jane";
  as.as.uid = "1234";
  as.as.groups = {"dev", "ops"};
  as.as.extra = {{"scopes", {"view", "edit"}}, {"empty", {""}}};
  rest::Client{as}.resource<Pod>("shop").get("web-1");
  EXPECT_THAT(last().all("Impersonate-User"), ElementsAre("jane"));
  EXPECT_THAT(last().all("Impersonate-Uid"), ElementsAre("1234"));
  EXPECT_THAT(last().all("Impersonate-Group"), ElementsAre("dev", "ops"));
  EXPECT_THAT(last().all("Impersonate-Extra-scopes"), ElementsAre("view", "edit"));
  EXPECT_THAT(last().all("Impersonate-Extra-empty"), ElementsAre(""));
}

TEST_F(ClientRequestsTest, RequestsCompressionUnlessDisabledOrStreamed) {
  const rest::Client client{config()};
  client.resource<Pod>("shop").list();
  EXPECT_EQ(last().header("Accept-Encoding"), "gzip");
  client.resource<Pod>("shop").dynamic().watch();
  EXPECT_EQ(last().header("Accept-Encoding"), "");
  client.get_raw("/metrics");
  EXPECT_EQ(last().header("Accept-Encoding"), "") << "a text does not show that it is cut";
  client.get_raw("/apis", {}, "application/json;v=v2, application/json");
  EXPECT_EQ(last().header("Accept-Encoding"), "gzip");
  rest::Config plain = config();
  plain.disable_compression = true;
  rest::Client{plain}.resource<Pod>("shop").list();
  EXPECT_EQ(last().header("Accept-Encoding"), "");
}

TEST_F(ClientRequestsTest, LargeBodiesArriveComplete) {
  std::string text(3u << 20, 'x');
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>('a' + i % 26);
  const rest::Client client{config()};
  const std::string patch = R"({"data":{"x":")" + text + "\"}}";
  client.resource<Pod>("shop").patch("web-1", rest::PatchType::kMerge, patch);
  EXPECT_TRUE(last().body == patch);
  EXPECT_EQ(last().header("Content-Length"), std::to_string(patch.size()));
}

TEST_F(ClientRequestsTest, SequentialRequestsUseOneConnection) {
  const rest::Client client{config()};
  for (int i = 0; i < 20; ++i) {
    client.resource<Pod>("shop").get("web-1");
    client.resource<Pod>("shop").create(kPod);
    client.resource<Pod>("shop").list();
  }
  EXPECT_EQ(count(), 60u);
  EXPECT_EQ(server_.connections(), 1);
}

// Connections stay open while writers pause between requests.
TEST(ClientConnectionsTest, ConnectionsOfConcurrentRequestsAreKept) {
  constexpr std::size_t kAtATime = 16;
  std::atomic<std::size_t> waiting{0};
  HttpServer server([&](HttpConnection& c) {
    while (c.read_request()) {
      // All requests of a round are in flight at the same time.
      const std::size_t round = waiting++ / kAtATime;
      if (!eventually([&] { return waiting >= (round + 1) * kAtATime; })) return;
      c.respond({.body = pod_json("web")});
    }
  });
  const rest::Client client{config_for(server)};
  for (int round = 0; round < 3; ++round) {
    std::vector<std::future<void>> calls;
    for (std::size_t i = 0; i < kAtATime; ++i) {
      calls.push_back(std::async(std::launch::async, [&] {
        client.resource<Pod>("shop").dynamic().patch("web", rest::PatchType::kMerge, "{}");
      }));
    }
    for (auto& call : calls) call.get();
  }
  EXPECT_EQ(server.connections(), static_cast<int>(kAtATime));
}

TEST_F(ClientRequestsTest, BodiesOfAllLengthsArrive) {
  const rest::Client client{config()};
  for (const std::size_t length : {0u, 1u, 65'500u, 65'536u, 70'000u, 3'000'000u}) {
    SCOPED_TRACE(length);
    const std::string body = R"({"data":")" + std::string(length, 'x') + R"("})";
    client.resource<Pod>("shop").dynamic().patch("web", rest::PatchType::kMerge, body);
    EXPECT_EQ(last().body, body);
  }
  EXPECT_EQ(server_.connections(), 1);
}

TEST_F(ClientRequestsTest, CoroutinesMayLeaveOptionsOut) {
  const rest::Client client{config()};
  auto calls = [](rest::Client inner) -> Awaitable<void> {
    const auto pods = inner.resource<Pod>("shop").dynamic();
    const api::Object pod = api::Object::parse(pod_json("web-1"));
    co_await pods.async_get("web-1");
    co_await pods.async_list();
    co_await pods.async_watch();
    co_await pods.async_create(pod);
    co_await pods.async_update(pod);
    co_await pods.async_patch("web-1", rest::PatchType::kMerge, "{}");
    co_await pods.async_remove("web-1");
    co_await pods.async_remove_collection();
    co_await inner.async_get_raw("/version");
  };
  client.loop().run(calls(client));
  EXPECT_EQ(count(), 9u);
}

TEST_F(ClientRequestsTest, RejectsBlockingCallsOnTheLoop) {
  const rest::Client client{config()};
  auto on_loop = [](rest::Client inner) -> Awaitable<std::string> {
    try {
      inner.resource<Pod>("shop").get("web-1");
    } catch (const InvalidArgument& e) {
      co_return e.what();
    }
    co_return "no exception";
  };
  EXPECT_THAT(client.loop().run(on_loop(client)), HasSubstr("co_await"));
}

}  // namespace
}  // namespace lookout::test
