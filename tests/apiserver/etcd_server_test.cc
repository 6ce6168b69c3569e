// Health and metrics of a server on etcd.
#include <gtest/gtest.h>

#include <chrono>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "apiserver/controllers/controllers.h"
#include "apiserver/controllers/quota_controller.h"
#include "apiserver/quota/namespace_limits.h"
#include "apiserver/resources/resource_registry.h"
#include "apiserver/resources/store.h"
#include "lookout/apiserver/server.h"
#include "lookout/apiserver/storage/etcd3.h"
#include "lookout/rest/client.h"
#include "tests/apiserver/http_client.h"
#include "tests/apiserver/storage/etcd3/etcd_process.h"
#include "tests/apiserver/storage/storage_client.h"
#include "tests/support/eventually.h"
#include "tests/support/matchers.h"
#include "tests/support/thrown.h"

namespace lookout::apiserver {
namespace {

using test::eventually;

class EtcdServerTest : public testing::Test {
 protected:
  void SetUp() override {
    if (!test::etcd_is_there()) GTEST_SKIP() << "*** no etcd here ***";
    cluster_ = std::make_unique<test::EtcdCluster>();
  }

  void serve(bool cache = true, std::size_t history = storage::EtcdOptions().history) {
    storage::EtcdOptions etcd;
    etcd.endpoints = cluster_->endpoints();
    etcd.watch_cache = cache;
    etcd.history = history;
    ServerOptions options;
    options.storage = std::make_shared<storage::EtcdBackend>(std::move(etcd));
    server_ = std::make_unique<Server>(std::move(options));
  }
  HttpAnswer get(const std::string& path) const { return http(server_->port(), "GET", path); }

  /// The value of a metric with these labels; empty if there is none.
  std::string number(const std::string& name, std::initializer_list<const char*> labels) const {
    return number(get("/metrics").body, name, labels);
  }
  static std::string number(const std::string& body, const std::string& name,
                            std::initializer_list<const char*> labels) {
    for (std::size_t at = 0; at < body.size();) {
      const std::size_t end = body.find('\n', at);
      const std::string line = body.substr(at, end - at);
      at = end + 1;
      if (line.rfind(name + "{", 0) != 0) continue;
      bool all = true;
      for (const char* label : labels) all = all && line.find(label) != std::string::npos;
      if (all) return line.substr(line.rfind(' ') + 1);
    }
    return "";
  }

  std::unique_ptr<test::EtcdCluster> cluster_;
  std::unique_ptr<Server> server_;
};

TEST_F(EtcdServerTest, IsHealthyWhileEtcdResponds) {
  serve();
  EXPECT_EQ(get("/readyz?verbose").body,
            "[+]ping ok\n[+]log ok\n[+]etcd ok\n[+]etcd-readiness ok\n[+]shutdown ok\n"
            "readyz check passed\n");
  EXPECT_EQ(get("/healthz?verbose").body,
            "[+]ping ok\n[+]log ok\n[+]etcd ok\nhealthz check passed\n");
  for (const char* path :
       {"/healthz/etcd", "/livez/etcd", "/readyz/etcd", "/readyz/etcd-readiness"})
    EXPECT_EQ(get(path).body, "ok") << path;
  EXPECT_EQ(get("/healthz/etcd-readiness").code, 404);
  cluster_->kill(0);
  EXPECT_EQ(get("/healthz").code, 500);
  EXPECT_EQ(get("/readyz").body,
            "[+]ping ok\n[+]log ok\n[-]etcd failed: reason withheld\n"
            "[-]etcd-readiness failed: reason withheld\n[+]shutdown ok\nreadyz check failed\n");
  EXPECT_EQ(get("/readyz?exclude=etcd&exclude=etcd-readiness").code, 200);
  cluster_->restart(0);
  EXPECT_TRUE(eventually([&] { return get("/readyz").code == 200; }));
}

TEST_F(EtcdServerTest, EndsWatchesWith410WhenItsEtcdIsRestored) {
  serve();
  const std::string url = "/api/v1/namespaces/default/configmaps";
  const auto create = [&](const std::string& name) {
    return http(server_->port(), "POST", url, R"({"metadata":{"name":")" + name + "\"}}",
                {{"Content-Type", "application/json"}})
        .code;
  };
  EXPECT_EQ(create("kept"), 201);
  const std::string snapshot = cluster_->save_snapshot(0);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(create("lost-" + std::to_string(i)), 201);
  HttpClient client(server_->port());
  client.send("GET " + url + "?watch=1 HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ASSERT_TRUE(eventually(
      [&] { return number("apiserver_watch_events_total", {R"(kind="ConfigMap")"}) == "21"; }));
  cluster_->restore(snapshot);
  // The response ends.
  const HttpAnswer told = client.read_answer();
  EXPECT_EQ(told.code, 200);
  EXPECT_THAT(told.body, HasSubstr("lost-19"));
  const std::string last = told.body.substr(told.body.rfind('\n', told.body.size() - 2) + 1);
  EXPECT_THAT(last, HasSubstr(R"({"type":"ERROR","object":{"kind":"Status")"));
  EXPECT_THAT(last, HasSubstr(R"("reason":"Expired")"));
  EXPECT_THAT(last, HasSubstr(R"("code":410)"));
  const std::string list = get(url).body;
  EXPECT_THAT(list, HasSubstr(R"("name":"kept")"));
  EXPECT_THAT(list, Not(HasSubstr("lost")));
  EXPECT_EQ(create("lost-1"), 201);
}

TEST_F(EtcdServerTest, EndsWatchesWith410WhenARevisionIsLargerThanTheHistory) {
  serve(true, 5);
  const std::string url = "/api/v1/namespaces/default/configmaps";
  const auto create = [&](const std::string& name) {
    return http(server_->port(), "POST", url, R"({"metadata":{"name":")" + name + "\"}}",
                {{"Content-Type", "application/json"}})
        .code;
  };
  HttpClient client(server_->port());
  client.send("GET " + url + "?watch=1 HTTP/1.1\r\nHost: localhost\r\n\r\n");
  HttpClient elsewhere(server_->port());
  elsewhere.send(
      "GET /api/v1/namespaces/kube-node-lease/configmaps?watch=1 HTTP/1.1\r\n"
      "Host: localhost\r\n\r\n");
  const auto sent = [&](const char* events) {
    return eventually(
        [&] { return number("apiserver_watch_events_total", {R"(kind="ConfigMap")"}) == events; });
  };
  ASSERT_TRUE(eventually(
      [&] { return number("apiserver_registered_watchers", {R"(kind="ConfigMap")"}) == "2"; }));
  // One at a time, so that the watch does not expire.
  for (int i = 1; i <= 8; ++i) {
    EXPECT_EQ(create("map-" + std::to_string(i)), 201);
    ASSERT_TRUE(sent(std::to_string(i).c_str()));
  }
  cluster_->etcdctl({"del", "--prefix", "/registry/configmaps/default/"});
  const HttpAnswer told = client.read_answer();
  EXPECT_THAT(told.body, HasSubstr("map-8"));
  EXPECT_THAT(told.body, Not(HasSubstr("DELETED")));
  EXPECT_THAT(told.body, HasSubstr(R"("code":410)"));
  EXPECT_THAT(elsewhere.read_answer().body, HasSubstr(R"("code":410)"));
}

// Without a cache, each new watch of a resource with an unreadable value gets the error immediately.
TEST_F(EtcdServerTest, ControllersEndWithTheErrorOfTheirWatch) {
  for (const char* key : {"pods/default/odd", "persistentvolumeclaims/default/odd",
                          "persistentvolumes/odd", "resourcequotas/default/odd"})
    cluster_->etcdctl({"put", std::string("/registry/") + key, R"({"odd":)"});
  storage::EtcdOptions etcd;
  etcd.endpoints = cluster_->endpoints();
  etcd.watch_cache = false;
  storage::EtcdBackend backend(std::move(etcd));
  resources::ResourceRegistry registry(backend);
  const resources::Store store(registry.table()->find("", "v1", "namespaces"));
  std::map<std::string, controllers::MakeTask> tasks;
  const controllers::Spawn spawn = [&](const std::string& name, controllers::MakeTask make) {
    tasks.emplace(name, std::move(make));
  };
  const controllers::Context context{registry, store, spawn};
  quota::NamespaceLimits limits(registry);
  controllers::QuotaController quotas(context, limits);
  quotas.begin();
  tasks.emplace("pods", [&] { return controllers::run_pod_reaper(context); });
  tasks.emplace("claims", [&] { return controllers::run_claim_protection(context); });
  tasks.emplace("volumes", [&] { return controllers::run_volume_protection(context); });
  storage::TestThread thread;
  for (const char* name : {"pods", "claims", "volumes", "quotas"}) {
    SCOPED_TRACE(name);
    const auto error = test::thrown<api::StatusError>([&] {
      thread.run([](const controllers::MakeTask& make) -> Awaitable<int> {
        co_await make();
        co_return 0;
      }(tasks.at(name)));
    });
    ASSERT_TRUE(error);
    EXPECT_EQ(error->status().code, 500);
  }
}

TEST_F(EtcdServerTest, CountsRequestsToEtcd) {
  serve();
  const std::string url = "/api/v1/namespaces/default/configmaps";
  const auto send = [&](const std::string& method, const std::string& path,
                        const std::string& body = {}) {
    return http(server_->port(), method, path, body, {{"Content-Type", "application/json"}}).code;
  };
  EXPECT_EQ(send("POST", url, R"({"metadata":{"name":"a"}})"), 201);
  EXPECT_EQ(send("PUT", url + "/a", R"({"metadata":{"name":"a"},"data":{"k":"v"}})"), 200);
  EXPECT_EQ(send("POST", url, R"({"metadata":{"name":"b"}})"), 201);
  EXPECT_EQ(send("DELETE", url + "/b"), 200);
  EXPECT_EQ(get(url + "/a").code, 200);
  EXPECT_EQ(get(url).code, 200);
  const std::string body = get("/metrics").body;
  const auto operations = [&](const char* operation) {
    const std::string label = std::string(R"(operation=")") + operation + "\"";
    const auto labels = {label.c_str(), R"(resource="configmaps")", R"(group="")"};
    const std::string count = number(body, "etcd_requests_total", labels);
    EXPECT_EQ(number(body, "etcd_request_duration_seconds_count", labels), count) << operation;
    return count;
  };
  EXPECT_EQ(operations("create"), "2");
  EXPECT_EQ(operations("update"), "1");
  EXPECT_EQ(operations("delete"), "1");
  EXPECT_NE(operations("get"), "");
  EXPECT_EQ(operations("listWithCount"), "") << "the cache knows how many there are";
  EXPECT_EQ(number("apiserver_storage_objects", {R"(resource="configmaps")"}), "1");
  EXPECT_EQ(number("apiserver_resource_objects", {R"(group="apps",resource="deployments")"}), "0");
  const auto caches = {R"(group="",resource="configmaps")"};
  EXPECT_EQ(number("apiserver_watch_cache_initializations_total", caches), "1");
  EXPECT_TRUE(eventually([&] {
    return number("apiserver_watch_cache_events_received_total", caches) == "4" &&
           number("apiserver_storage_events_received_total", caches) == "4";
  }));
  EXPECT_EQ(number("apiserver_cache_list_total", caches), "1");
  EXPECT_GE(std::stod(number("apiserver_watch_cache_resource_version", caches)), 4);
  // Nothing is counted twice.
  const std::string all = get("/metrics").body;
  for (const char* name : {"etcd_requests_total", "apiserver_request_total"}) {
    const std::string head = std::string("# TYPE ") + name + " ";
    EXPECT_NE(all.find(head), std::string::npos) << name;
    EXPECT_EQ(all.find(head), all.rfind(head)) << name;
  }
}

TEST_F(EtcdServerTest, CountsListsThatBypassTheCache) {
  serve(false);
  const std::string url = "/api/v1/namespaces/default/configmaps";
  for (const char* name : {"a", "b"}) {
    http(server_->port(), "POST", url, std::string(R"({"metadata":{"name":")") + name + "\"}}",
         {{"Content-Type", "application/json"}});
  }
  EXPECT_EQ(get(url + "?fieldSelector=metadata.name!%3Db").code, 200);
  const auto labels = {R"(group="",resource="configmaps")"};
  EXPECT_EQ(number("apiserver_storage_list_total", labels), "1");
  EXPECT_EQ(number("apiserver_storage_list_fetched_objects_total", labels), "2");
  EXPECT_EQ(number("apiserver_storage_list_returned_objects_total", labels), "1");
  EXPECT_EQ(number("apiserver_watch_cache_initializations_total", labels), "");
  EXPECT_EQ(number("apiserver_cache_list_total", labels), "");
}

TEST_F(EtcdServerTest, ServesMetricsWhileEtcdIsDown) {
  for (const bool cached : {true, false}) {
    serve(cached);
    ASSERT_TRUE(eventually([&] {
      return number("apiserver_storage_objects", {R"(resource="namespaces")"}) == "4";
    })) << cached;
    cluster_->freeze(0);
    // Immediately: requests to etcd would take ten seconds each.
    EXPECT_EQ(number("apiserver_storage_objects", {R"(resource="namespaces")"}), "4");
    cluster_->thaw(0);
    server_.reset();
  }
}

TEST_F(EtcdServerTest, DeletedDefinitionsReleaseTheirCaches) {
  serve();
  const auto watches = [&] {
    const std::string name = "\netcd_debugging_mvcc_watcher_total ";
    const std::string body =
        http(static_cast<std::uint16_t>(cluster_->port()), "GET", "/metrics").body;
    return std::stoi(body.substr(body.find(name) + name.size()));
  };
  const std::string url = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
  const auto is_served = [&](const std::string& plural) {
    return get("/apis/example.com/v1/" + plural).code == 200;
  };
  // The caches of the built-in resources.
  int before = 0;
  ASSERT_TRUE(eventually([&] {
    const int now = watches();
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    return now > 50 && std::exchange(before, now) == now;
  }));
  for (int i = 0; i < 6; ++i) {
    const std::string plural = "tabs" + std::to_string(i);
    const std::string kind = "Tab" + std::to_string(i);
    EXPECT_EQ(
        http(
            server_->port(), "POST", url,
            R"({"metadata":{"name":")" + plural +
                R"(.example.com"},"spec":{"group":"example.com","scope":"Cluster","names":{"plural":")" +
                plural + R"(","kind":")" + kind +
                R"("},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":)"
                R"({"type":"object","x-kubernetes-preserve-unknown-fields":true}}}]}})",
            {{"Content-Type", "application/json"}})
            .code,
        201);
    ASSERT_TRUE(eventually([&] { return is_served(plural); }));
    EXPECT_EQ(
        http(server_->port(), "POST", "/apis/example.com/v1/" + plural,
             R"({"apiVersion":"example.com/v1","kind":")" + kind + R"(","metadata":{"name":"a"}})",
             {{"Content-Type", "application/json"}})
            .code,
        201);
    EXPECT_EQ(http(server_->port(), "DELETE", url + "/" + plural + ".example.com").code, 200);
    ASSERT_TRUE(eventually([&] { return get("/apis/example.com/v1/" + plural).code == 404; }));
  }
  EXPECT_TRUE(eventually([&] { return watches() < before + 3; })) << watches() << ", " << before;
}

TEST_F(EtcdServerTest, AnUnreadableValueDoesNotAffectOthers) {
  cluster_->etcdctl({"put", "/registry/secrets/default/odd", R"({"hidden":"password)"});
  serve();
  const std::string all = "/api/v1/secrets";
  const std::string url = "/api/v1/namespaces/default/secrets";
  const std::string secret = R"({"metadata":{"name":"even"}})";
  EXPECT_EQ(http(server_->port(), "POST", url, secret).code, 201);
  EXPECT_EQ(get(url + "/even").code, 200);
  EXPECT_EQ(get(url + "/even?resourceVersion=0").code, 200);
  EXPECT_EQ(get("/api/v1/namespaces/kube-system/secrets").code, 200);
  // The object must not look absent.
  for (const std::string& path : {all, url, url + "?resourceVersion=0", url + "?limit=10",
                                  url + "?labelSelector=a%3Db", url + "?watch=1&resourceVersion=0",
                                  url + "?watch=1", url + "/odd", url + "/odd?resourceVersion=0"}) {
    const HttpAnswer answer = get(path);
    EXPECT_EQ(answer.code, 500) << path;
    EXPECT_THAT(answer.body, HasSubstr("/registry/secrets/default/odd")) << path;
    EXPECT_THAT(answer.body, Not(HasSubstr("hidden"))) << path;
    EXPECT_THAT(answer.body, Not(HasSubstr("password"))) << path;
  }
  EXPECT_EQ(http(server_->port(), "DELETE", url + "/odd").code, 500);
  cluster_->etcdctl({"del", "/registry/secrets/default/odd"});
  EXPECT_TRUE(eventually([&] { return get(url).code == 200; }));
  EXPECT_EQ(get(url + "/odd").code, 404);
}

// Reads of any version need no etcd.
TEST_F(EtcdServerTest, AnyVersionIsServedFromTheCache) {
  serve();
  const std::string url = "/api/v1/namespaces/default/configmaps";
  EXPECT_EQ(http(server_->port(), "POST", url, R"({"metadata":{"name":"a"}})").code, 201);
  EXPECT_EQ(get(url).code, 200) << "the cache has it";
  cluster_->freeze(0);
  EXPECT_EQ(get(url + "/a?resourceVersion=0").code, 200);
  const std::string watch = url + "?watch=1&resourceVersion=0&timeoutSeconds=1";
  for (const char* initial : {"", "&sendInitialEvents=true&resourceVersionMatch=NotOlderThan"}) {
    const HttpAnswer answer = get(watch + initial);
    EXPECT_EQ(answer.code, 200) << initial;
    EXPECT_THAT(answer.body, HasSubstr("ADDED")) << initial;
  }
  const HttpAnswer present =
      get(watch + "&sendInitialEvents=false&resourceVersionMatch=NotOlderThan");
  EXPECT_EQ(present.code, 200);
  EXPECT_EQ(present.body, "");
  cluster_->thaw(0);
}

/// The types of the events in the body of a watch.
std::vector<std::string> told_types(const std::string& body) {
  std::vector<std::string> out;
  constexpr std::string_view kType = R"("type":")";
  for (std::size_t at = 0; (at = body.find(kType, at)) != std::string::npos;) {
    at += kType.size();
    const std::string type = body.substr(at, body.find('"', at) - at);
    if (type == "ADDED" || type == "MODIFIED" || type == "DELETED") out.push_back(type);
  }
  return out;
}

// Without a cache, only etcd has past states.
TEST_F(EtcdServerTest, AWatchOfConvertedObjectsReportsObjectsThatLeaveItsSelection) {
  serve(false);
  // (The storage version is never sent to the webhook.)
  const std::string definition =
      R"({"metadata":{"name":"tabs.example.com"},"spec":{"group":"example.com","scope":"Cluster",)"
      R"("names":{"plural":"tabs","kind":"Tab"},"versions":[{"name":"v1","served":true,)"
      R"("storage":true,"schema":{"openAPIV3Schema":{"type":"object",)"
      R"("x-kubernetes-preserve-unknown-fields":true}}}],"conversion":{"strategy":"Webhook",)"
      R"("webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":"https://a.test/"}}}}})";
  EXPECT_EQ(http(server_->port(), "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                 definition, {{"Content-Type", "application/json"}})
                .code,
            201);
  const std::string url = "/apis/example.com/v1/tabs";
  ASSERT_TRUE(eventually([&] { return get(url).code == 200; }));
  const auto put_label = [&](const std::string& value) {
    return http(server_->port(), "PATCH", url + "/a",
                R"({"metadata":{"labels":{"l":")" + value + R"("}}})",
                {{"Content-Type", "application/merge-patch+json"}})
        .code;
  };
  const api::Object listed = api::Object::parse(get(url).body);
  const std::string begin(listed["metadata"]["resourceVersion"].as_string());
  EXPECT_EQ(http(server_->port(), "POST", url,
                 R"({"apiVersion":"example.com/v1","kind":"Tab","metadata":{"name":"a",)"
                 R"("labels":{"l":"1"}}})",
                 {{"Content-Type", "application/json"}})
                .code,
            201);
  for (const char* value : {"2", "1"}) EXPECT_EQ(put_label(value), 200);
  EXPECT_EQ(http(server_->port(), "DELETE", url + "/a").code, 200);
  const HttpAnswer watch =
      get(url + "?watch=1&labelSelector=l%3D1&timeoutSeconds=1&resourceVersion=" + begin);
  EXPECT_EQ(told_types(watch.body),
            (std::vector<std::string>{"ADDED", "DELETED", "ADDED", "DELETED"}))
      << watch.body;
}

/// `levels` objects within each other.
std::string nested(std::size_t levels) {
  std::string out;
  for (std::size_t i = 0; i < levels; ++i) out += R"({"a":)";
  out += "1";
  return out.append(levels, '}');
}

// kube-apiserver accepts 10,000 levels, and may have written them.
TEST_F(EtcdServerTest, DeepValuesOfOtherWritersAreServed) {
  serve();
  const std::string definition =
      R"({"metadata":{"name":"tabs.example.com"},"spec":{"group":"example.com","scope":"Cluster",)"
      R"("names":{"plural":"tabs","kind":"Tab"},"versions":[{"name":"v1","served":true,)"
      R"("storage":true,"schema":{"openAPIV3Schema":{"type":"object",)"
      R"("x-kubernetes-preserve-unknown-fields":true}}}]}})";
  EXPECT_EQ(http(server_->port(), "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
                 definition)
                .code,
            201);
  const std::string url = "/apis/example.com/v1/tabs";
  ASSERT_TRUE(eventually([&] { return get(url).code == 200; }));
  const auto put = [&](const std::string& name, std::size_t levels) {
    cluster_->etcdctl({"put", "/registry/example.com/tabs/" + name,
                       R"({"apiVersion":"example.com/v1","kind":"Tab","metadata":{"name":")" +
                           name + R"(","uid":"u-)" + name + R"("},"spec":)" + nested(levels) +
                           "}"});
  };
  put("deep", 9'000);
  for (const std::string& path :
       {url, url + "?resourceVersion=0", url + "/deep", url + "/deep?resourceVersion=0"}) {
    ASSERT_TRUE(eventually([&] { return get(path).body.find(nested(9'000)) != std::string::npos; }))
        << path;
  }
  // Updates are rejected: this server accepts at most 1,000 levels.
  const HttpAnswer patched =
      http(server_->port(), "PATCH", url + "/deep", R"({"metadata":{"labels":{"b":"c"}}})",
           {{"Content-Type", "application/merge-patch+json"}});
  EXPECT_GE(patched.code, 400);
  EXPECT_THAT(patched.body, HasSubstr("deep"));
  EXPECT_EQ(http(server_->port(), "DELETE", url + "/deep").code, 200);
  // Too deep for kube-apiserver, too.
  put("deeper", 10'000);
  ASSERT_TRUE(eventually([&] { return get(url).code == 500; }));
  EXPECT_THAT(get(url).body, HasSubstr("/registry/example.com/tabs/deeper"));
  EXPECT_EQ(get("/readyz").code, 200);
}

TEST_F(EtcdServerTest, ADeepDefinitionDoesNotAffectOthers) {
  std::string schema = R"({"type":"string"})";
  for (int i = 0; i < 2'000; ++i)
    schema = R"({"type":"object","properties":{"a":)" + std::move(schema) + "}}";
  cluster_->etcdctl(
      {"put", "/registry/apiextensions.k8s.io/customresourcedefinitions/tabs.example.com",
       R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",)"
       R"("metadata":{"name":"tabs.example.com","uid":"u"},"spec":{"group":"example.com",)"
       R"("scope":"Cluster","names":{"plural":"tabs","kind":"Tab","singular":"tab",)"
       R"("listKind":"TabList"},"versions":[{"name":"v1","served":true,"storage":true,)"
       R"("schema":{"openAPIV3Schema":)" +
           schema + "}}]}}"});
  serve();
  EXPECT_EQ(get("/apis/apiextensions.k8s.io/v1/customresourcedefinitions").code, 200);
  EXPECT_EQ(get("/openapi/v3").code, 200);
  EXPECT_EQ(get("/openapi/v2").code, 200);
  EXPECT_EQ(get("/readyz").code, 200);
}

TEST_F(EtcdServerTest, AWatchEndsWithTheDefinitionOfItsResource) {
  for (const bool cache : {true, false}) {
    SCOPED_TRACE(cache);
    serve(cache);
    const rest::Client client(server_->client_config());
    const auto definitions =
        client.resource(api::Resource{"apiextensions.k8s.io", "v1", "CustomResourceDefinition",
                                      "customresourcedefinitions", false});
    definitions.create(api::Object::parse(
        R"({"metadata":{"name":"things.example.com"},"spec":{"group":"example.com",
        "scope":"Namespaced","names":{"plural":"things","singular":"thing","kind":"Thing"},
        "versions":[{"name":"v1","served":true,"storage":true,
        "schema":{"openAPIV3Schema":{"type":"object"}}}]}})"));
    const auto things =
        client.resource(api::Resource{"example.com", "v1", "Thing", "things", true}, "default");
    things.create(api::Object::parse(
        R"({"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"a"}})"));
    rest::CallOptions patience;
    patience.timeout = std::chrono::seconds(20);
    auto watch = things.watch({}, {}, patience);
    const auto added = watch.next();
    ASSERT_TRUE(added);
    EXPECT_EQ(added->type, api::EventType::kAdded);
    definitions.remove("things.example.com");
    auto event = watch.next();
    if (event && event->type == api::EventType::kDeleted) event = watch.next();
    EXPECT_FALSE(event) << event->object.to_json();
  }
}

}  // namespace
}  // namespace lookout::apiserver
