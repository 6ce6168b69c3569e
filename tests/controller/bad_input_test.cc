// Servers that reject requests, disappear or stop serving a kind, and reconcilers that hang.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lookout/controller/builder.h"
#include "lookout/k8s/apiextensions/v1.h"
#include "lookout/testing/fake_clock.h"
#include "tests/controller/manager_fixture.h"
#include "tests/support/held.h"
#include "tests/support/http_server.h"
#include "tests/support/tcp_relay.h"
#include "tests/support/thrown.h"
#include "tests/support/website_definition.h"

namespace lookout::controller {
namespace {

using k8s::apiextensions::v1::CustomResourceDefinition;

struct Website : api::TypedObject {
  using TypedObject::TypedObject;
  static constexpr api::ResourceType kResource{"example.com", "v1", "Website", "websites", true};
};

class BadInputTest : public ManagerFixture {
 protected:
  void define() const {
    definitions_.create(test::website_definition(R"([
        {"name": "v1", "served": true, "storage": false,
         "schema": {"openAPIV3Schema": {"type": "object"}}},
        {"name": "v2", "served": true, "storage": true,
         "schema": {"openAPIV3Schema": {"type": "object"}}}])"));
  }
  void serve_v1(bool served) const {
    definitions_.patch(
        "websites.example.com", rest::PatchType::kJson,
        std::string(R"([{"op":"replace","path":"/spec/versions/0/served","value":)") +
            (served ? "true" : "false") + "}]");
  }
  /// A definition is not served at once.
  void put_site(const std::string& name) const {
    const auto site = api::Object::parse(
        R"({"apiVersion":"example.com/v1","kind":"Website","metadata":{"name":")" + name +
        R"("}})");
    EXPECT_TRUE(eventually([&] {
      try {
        client_.resource<Website>("default").create(site);
        return true;
      } catch (const api::StatusError&) {
        return false;
      }
    }));
  }
  bool served() const {
    try {
      client_.resource<Website>("default").list();
      return true;
    } catch (const api::StatusError&) {
      return false;
    }
  }
  static std::string check(const Manager& manager) {
    return manager.cache().check().value_or("ok");
  }

  const rest::TypedClient<CustomResourceDefinition> definitions_ =
      client_.resource<CustomResourceDefinition>();
};

TEST_F(BadInputTest, AMissingDefinitionIsNamedWithAHint) {
  ManagerOptions options;
  options.cache.sync_timeout = 300ms;
  Manager manager{client_, options};
  Builder<Website>(manager).reconcile([](Request, Context&) -> Result { return {}; });
  Running running(manager);
  EXPECT_THAT(error_of(running),
              testing::AllOf(
                  HasSubstr("failed to sync all caches: websites.example.com: "),
                  HasSubstr("is its CustomResourceDefinition installed, and does it serve v1?")));
}

TEST_F(BadInputTest, ADefinitionMayBeCreatedDuringTheStart) {
  Manager manager{client_};
  std::atomic<int> runs{0};
  Builder<Website>(manager).reconcile(counting(runs));
  const Running running(manager);
  ASSERT_TRUE(eventually(
      [&] { return check(manager).find("CustomResourceDefinition") != std::string::npos; }));
  define();
  put_site("shop");
  EXPECT_TRUE(eventually([&] { return runs == 1; }));
}

/// A kind that disappears from the server and returns.
class LostKindTest : public BadInputTest {
 protected:
  void expect_recovery(const std::function<void()>& lose, const std::function<void()>& regain) {
    define();
    put_site("before");
    const auto clock = std::make_shared<test::FakeClock>();
    ManagerOptions options;
    options.clock = clock;
    test::TcpRelay relay(server_.port());
    rest::Config config;
    config.server = relay.url();
    Manager manager{rest::Client(config), options};
    std::mutex mutex;
    std::map<std::string, int> runs;
    Builder<Website>(manager).reconcile([&](Request request, Context&) -> Result {
      const std::lock_guard lock(mutex);
      ++runs[request.name];
      return {};
    });
    const auto ran = [&](const std::string& name) {
      const std::lock_guard lock(mutex);
      return runs[name];
    };
    Running running(manager);
    ASSERT_TRUE(eventually([&] { return ran("before") == 1; }));
    EXPECT_EQ(check(manager), "ok");
    EXPECT_EQ(metric(manager, "informer_live", "websites.example.com"), 1);

    lose();
    ASSERT_TRUE(eventually([&] { return !served(); }));
    // The watch ends, and a new one fails.
    relay.cut();
    relay.mend();
    EXPECT_TRUE(eventually([&] {
      clock->advance(1s);
      return check(manager).find("websites.example.com: last contact ") != std::string::npos;
    }));
    EXPECT_TRUE(eventually([&] {
      clock->advance(1s);
      return check(manager).find("does it serve v1?") != std::string::npos;
    })) << check(manager);
    EXPECT_EQ(metric(manager, "informer_live", "websites.example.com"), 0);
    EXPECT_FALSE(running.ended());

    regain();
    put_site("after");
    EXPECT_TRUE(eventually([&] {
      clock->advance(1s);
      return ran("after") > 0;
    }));
    EXPECT_TRUE(eventually([&] { return check(manager) == "ok"; }));
    EXPECT_EQ(metric(manager, "informer_live", "websites.example.com"), 1);
  }
};

TEST_F(LostKindTest, ADeletedDefinitionIsReportedAndRecovers) {
  expect_recovery(
      [&] { definitions_.remove("websites.example.com"); },
      [&] {
        EXPECT_TRUE(eventually([&] { return !definitions_.find("websites.example.com"); }));
        define();
      });
}

TEST_F(LostKindTest, AnUnservedVersionIsReportedAndRecovers) {
  expect_recovery([&] { serve_v1(false); }, [&] { serve_v1(true); });
}

TEST_F(BadInputTest, AnUnreachableServerMakesTheCachesStale) {
  auto server = std::make_unique<apiserver::Server>();
  const rest::Client client{server->client_config()};
  const auto clock = std::make_shared<test::FakeClock>();
  ManagerOptions options;
  options.clock = clock;
  options.max_cache_staleness = 30s;
  Manager manager{client, options};
  manager.cache().declare<ConfigMap>();
  const Running running(manager);
  ASSERT_TRUE(eventually([&] { return manager.is_leader(); }));
  EXPECT_EQ(manager.cache().check(30s), std::nullopt);
  server->stop(0ms);
  EXPECT_TRUE(eventually([&] { return metric(manager, "informer_live", "configmaps") == 0; }));
  // The cached objects are still fresh and readable.
  EXPECT_EQ(manager.cache().check(30s), std::nullopt);
  clock->advance(31s);
  EXPECT_THAT(manager.cache().check(30s).value_or(""),
              HasSubstr("caches that may be out of date: configmaps: last contact 31 s ago: "));
  EXPECT_EQ(manager.cache().check(1min), std::nullopt);
  EXPECT_NO_THROW(manager.cache().view().list<ConfigMap>());
}

TEST_F(BadInputTest, AHangingReconcilerIsReportedByName) {
  put("stuck", "1");
  const auto clock = std::make_shared<test::FakeClock>();
  std::atomic<bool> inside{false};
  std::atomic<bool> go_on{false};
  ManagerOptions options;
  options.clock = clock;
  options.graceful_shutdown_timeout = 30s;
  options.on_shutdown_overrun = [&] { go_on = true; };
  Manager manager{client_, options};
  Builder<ConfigMap>(manager).reconcile_timeout(10s).reconcile([&](Request, Context&) -> Result {
    inside = true;
    EXPECT_TRUE(eventually([&] { return go_on.load(); }));
    return {};
  });
  Running running(manager);
  ASSERT_TRUE(eventually([&] { return inside.load(); }));
  // Counted when the timeout expires, not when the reconciler returns.
  EXPECT_EQ(metric(manager, "controller_runtime_reconcile_timeouts_total"), 0);
  EXPECT_TRUE(eventually([&] {
    clock->advance(1s);
    return metric(manager, "controller_runtime_reconcile_timeouts_total") == 1;
  }));
  EXPECT_EQ(metric(manager, "controller_runtime_active_workers"), 1);
  EXPECT_GE(metric(manager, "workqueue_longest_running_processor_seconds"), 10);
  running.request_stop();
  EXPECT_TRUE(eventually([&] {
    clock->advance(1s);
    return go_on.load();
  }));
  try {
    running.end();
    FAIL() << "no error";
  } catch (const ShutdownOverrunError& e) {
    EXPECT_THAT(e.what(), HasSubstr("controller configmap"));
    EXPECT_THAT(e.what(), HasSubstr("configmap default/stuck"));
  }
}

TEST_F(BadInputTest, AHangingReconcileMakesTheProgramUnhealthyIfConfigured) {
  put("one", "1");
  put("two", "1");
  const auto clock = std::make_shared<test::FakeClock>();
  std::atomic<int> inside{0};
  std::atomic<bool> go_on{false};
  const auto wait = [&](Request, Context&) -> Result {
    ++inside;
    EXPECT_TRUE(eventually([&] { return go_on.load(); }));
    return {};
  };
  ManagerOptions options;
  options.clock = clock;
  options.health_listen = "127.0.0.1:0";
  Manager manager{client_, options};
  Builder<ConfigMap>(manager).concurrency(2).stuck_after(30s).reconcile(wait);
  // Without the option there is no check.
  Builder<ConfigMap>(manager).named("careless").concurrency(2).reconcile(wait);
  const Running running(manager);
  rest::Config config;
  config.server = "http://127.0.0.1:" + std::to_string(manager.health_port());
  const rest::Client health(config);
  const auto get = [&](const std::string& path) -> std::string {
    try {
      return health.get_raw(path);
    } catch (const api::StatusError& e) {
      return std::to_string(e.code()) + ": " + e.what();
    }
  };
  ASSERT_TRUE(eventually([&] { return inside == 4; }));
  EXPECT_EQ(get("/healthz/controller/configmap"), "ok");
  EXPECT_THAT(get("/healthz/controller/careless"), HasSubstr("404"));
  clock->advance(29s);
  EXPECT_EQ(get("/healthz"), "ok");
  clock->advance(16s);
  EXPECT_THAT(get("/healthz"), testing::StartsWith("500"));
  EXPECT_THAT(get("/healthz/controller/configmap"),
              testing::AllOf(
                  HasSubstr("the reconcile of default/"),
                  HasSubstr(" has been running for 45.0 s, longer than 30000 ms; so have 1 more")));
  EXPECT_EQ(metric(manager, "workqueue_longest_running_processor_seconds", "configmap"), 45);
  go_on = true;
  EXPECT_TRUE(eventually([&] { return get("/healthz") == "ok"; }));
}

// ------------------------------------------------------------------------ rejected requests

/// A server of fixed ConfigMaps; a test can replace its responses.
class FakeApi {
 public:
  using Fault = std::function<std::optional<test::HttpResponse>(const test::HttpRequest&)>;
  explicit FakeApi(Fault fault)
      : fault_(std::move(fault)), server_([this](auto& connection) { serve(connection); }) {}

  rest::Client client() const {
    rest::Config config;
    config.server = server_.url();
    return rest::Client(config);
  }

  static test::HttpResponse refusal(int code, const std::string& reason,
                                    const std::string& message) {
    test::HttpResponse out;
    out.status = code;
    out.body = R"({"kind":"Status","apiVersion":"v1","status":"Failure","message":")" + message +
               R"(","reason":")" + reason + R"(","code":)" + std::to_string(code) + "}";
    return out;
  }
  static test::HttpResponse success(const std::string& body) {
    test::HttpResponse out;
    out.body = body;
    return out;
  }
  static std::string object(const std::string& ns, const std::string& name) {
    return R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"resourceVersion":"5","uid":"u-)" +
           name + R"(","namespace":")" + ns + R"(","name":")" + name + R"("}})";
  }

 private:
  void serve(test::HttpConnection& connection) const {
    while (const auto request = connection.read_request()) {
      if (const auto answer = fault_(*request)) {
        connection.respond(*answer);
        continue;
      }
      const auto begin = request->target.find("/namespaces/");
      if (begin == std::string::npos) {
        connection.respond(refusal(404, "NotFound", "no such path"));
        continue;
      }
      const auto name = request->target.substr(begin + 12);
      const std::string ns = name.substr(0, name.find('/'));
      if (request->target.find("sendInitialEvents") != std::string::npos) {
        connection.respond(refusal(422, "Invalid", "no streams"));
      } else if (request->target.find("watch=") != std::string::npos) {
        connection.begin_chunks();
        return connection.wait_for_close();
      } else if (request->method == "GET") {
        connection.respond(success(R"({"kind":"ConfigMapList","apiVersion":"v1",)"
                                   R"("metadata":{"resourceVersion":"10"},"items":[)" +
                                   object(ns, "one") + "," + object(ns, "two") + "]}"));
      } else {
        connection.respond(success(object(ns, "one")));
      }
    }
  }

  const Fault fault_;
  test::HttpServer server_;
};

class RefusalTest : public ManagerFixture {};

// Unlike a forbidden namespace, which the cache works without.
TEST_F(RefusalTest, AnInvalidTokenFailsTheFirstList) {
  const FakeApi fake([](const test::HttpRequest&) {
    return std::optional(FakeApi::refusal(401, "Unauthorized", "Unauthorized"));
  });
  ManagerOptions options;
  options.cache.namespaces = {"a", "b"};
  options.cache.sync_timeout = 300ms;
  Manager manager{fake.client(), options};
  Builder<ConfigMap>(manager).reconcile([](Request, Context&) -> Result { return {}; });
  Running running(manager);
  EXPECT_THAT(error_of(running), HasSubstr("configmaps in a"));
}

TEST_F(RefusalTest, AForbiddenNamespaceDoesNotAffectOthers) {
  std::atomic<bool> forbidden{true};
  const FakeApi fake([&](const test::HttpRequest& request) -> std::optional<test::HttpResponse> {
    if (!forbidden || request.target.find("/namespaces/secret/") == std::string::npos)
      return std::nullopt;
    return FakeApi::refusal(403, "Forbidden",
                            "configmaps is forbidden: the user cannot list them in secret");
  });
  const auto clock = std::make_shared<test::FakeClock>();
  ManagerOptions options;
  options.clock = clock;
  options.cache.namespaces = {"open", "secret"};
  Manager manager{fake.client(), options};
  std::atomic<int> of_open{0};
  std::atomic<int> of_secret{0};
  std::atomic<std::size_t> seen{0};
  Builder<ConfigMap>(manager).reconcile([&](Request request, Context& context) -> Result {
    // The other namespace is readable. A list of all namespaces would omit the forbidden one.
    seen = context.list<ConfigMap>("open").size();
    if (forbidden) {
      EXPECT_THROW(context.list<ConfigMap>(), NotCachedError);
      EXPECT_THROW(context.list<ConfigMap>("secret"), NotCachedError);
      EXPECT_THROW(context.find<ConfigMap>("secret", "one"), NotCachedError);
    }
    ++(request.ns == "open" ? of_open : of_secret);
    return {};
  });
  const Running running(manager);
  EXPECT_TRUE(eventually([&] {
    clock->advance(100ms);
    return of_open == 2;
  }));
  EXPECT_EQ(seen, 2u);
  EXPECT_EQ(of_secret, 0);
  const std::string wrong = manager.cache().check().value_or("");
  EXPECT_THAT(wrong, HasSubstr("configmaps in secret: "));
  EXPECT_THAT(wrong, HasSubstr("does the role of this program allow it to list and watch?"));
  EXPECT_THAT(wrong, testing::Not(HasSubstr("configmaps in open")));
  // Once access is granted, the namespace is read.
  forbidden = false;
  EXPECT_TRUE(eventually([&] {
    clock->advance(1s);
    return of_secret == 2;
  }));
  // (Its objects are visible as they arrive; the list is complete a little later.)
  EXPECT_TRUE(eventually([&] { return !manager.cache().check(); }));
}

TEST_F(RefusalTest, AnUnreadableObjectIsNotAnAbsentObject) {
  const FakeApi fake([](const test::HttpRequest& request) -> std::optional<test::HttpResponse> {
    if (request.target.find("watch=") != std::string::npos) return std::nullopt;
    return FakeApi::success(
        R"({"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"10"},)"
        R"("items":[)" +
        FakeApi::object("a", "one") +
        R"(,{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"a","name":"bad"}}]})");
  });
  ManagerOptions options;
  options.cache.namespaces = {"a"};
  Manager manager{fake.client(), options};
  std::string refused;
  std::atomic<int> runs{0};
  Builder<ConfigMap>(manager).reconcile([&](Request, Context& context) -> Result {
    EXPECT_FALSE(context.find<ConfigMap>("a", "none"));
    refused = test::refusal<NotCachedError>([&] { context.find<ConfigMap>("a", "bad"); });
    EXPECT_THROW(context.create_or_update<ConfigMap>({"a", "bad"}, [](const auto&) {}),
                 NotCachedError);
    ++runs;
    return {};
  });
  Running running(manager);
  EXPECT_TRUE(eventually([&] { return runs > 0; }));
  running.stop();
  EXPECT_EQ(refused, "configmaps: a/bad cannot be read, so the cache does not have it");
}

TEST_F(RefusalTest, A404OfAProxyIsNotAnAbsentObject) {
  std::atomic<bool> proxy{true};
  const FakeApi fake([&](const test::HttpRequest& request) -> std::optional<test::HttpResponse> {
    if (request.method == "GET") return std::nullopt;
    if (!proxy) return FakeApi::refusal(404, "NotFound", "there is no such object");
    test::HttpResponse page;
    page.status = 404;
    page.body = "<html>no such page</html>";
    page.content_type = "text/html";
    return page;
  });
  ManagerOptions options;
  options.cache.namespaces = {"default"};
  Manager manager{fake.client(), options};
  const ConfigMap deleted(api::Object::parse(
      R"({"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"one","namespace":"default",)"
      R"("resourceVersion":"5","deletionTimestamp":"2026-01-01T00:00:00Z",)"
      R"("finalizers":["example.com/x"]}})"));
  std::atomic<bool> done{false};
  Builder<ConfigMap>(manager).reconcile([&](Request request, Context& context) -> Result {
    if (request.name != "one" || done) return {};
    const auto one = context.get<ConfigMap>(request);
    EXPECT_THROW(context.remove(one), api::StatusError);
    // Otherwise the finalizer would stay forever.
    EXPECT_THROW(context.finalize(deleted, "example.com/x", [] {}), api::StatusError);
    proxy = false;
    EXPECT_FALSE(context.remove(one));
    EXPECT_TRUE(context.finalize(deleted, "example.com/x", [] {}));
    done = true;
    return {};
  });
  const Running running(manager);
  EXPECT_TRUE(eventually([&] { return done.load(); }));
}

TEST_F(RefusalTest, ANewLeaderComparesItsCachesAgainAfterAFailure) {
  std::atomic<int> comparisons{0};
  const FakeApi fake([&](const test::HttpRequest& request) -> std::optional<test::HttpResponse> {
    if (request.target.find("/leases") != std::string::npos) {
      if (request.method == "GET") return FakeApi::refusal(404, "NotFound", "there is no Lease");
      return FakeApi::success(request.body);
    }
    if (request.header("Accept").find("PartialObjectMetadata") == std::string::npos)
      return std::nullopt;
    if (++comparisons == 1) return FakeApi::refusal(500, "InternalError", "not now");
    return FakeApi::success(R"({"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1",)"
                            R"("metadata":{"resourceVersion":"10"},"items":[)" +
                            FakeApi::object("open", "one") + "," + FakeApi::object("open", "two") +
                            "]}");
  });
  const auto clock = std::make_shared<test::FakeClock>();
  clock->skip_sleeps_below(1min);
  ManagerOptions options = elected("us");
  options.cache.clock = clock;
  options.cache.namespaces = {"open"};
  Manager manager{fake.client(), options};
  std::atomic<int> runs{0};
  Builder<ConfigMap>(manager).reconcile([&](Request, Context&) -> Result {
    EXPECT_EQ(comparisons, 2);
    ++runs;
    return {};
  });
  const Running running(manager);
  EXPECT_TRUE(eventually([&] { return runs == 2; }));
}

/// A manager whose reconciler writes object "one" in each run, and counts its runs for other
/// objects, which need no write.
struct OneWriter {
  explicit OneWriter(const rest::Client& client, std::shared_ptr<Clock> clock = Clock::real())
      : manager(client, options(std::move(clock))) {
    Builder<ConfigMap>(manager)
        .options([](ControllerOptions& each) { each.read_your_writes = false; })
        .reconcile([this](Request request, Context& context) -> Result {
          const auto map = context.find<ConfigMap>(request);
          if (!map || request.name != "one") {
            ++others;
            return {};
          }
          const auto change = map->edit();
          change.data().set("a", "b");
          context.update(change);
          return {};
        });
    running.emplace(manager);
  }
  static ManagerOptions options(std::shared_ptr<Clock> clock) {
    ManagerOptions out;
    out.clock = std::move(clock);
    out.cache.namespaces = {"open"};
    return out;
  }

  std::atomic<int> others{0};
  Manager manager;
  std::optional<Running> running;
};

TEST_F(RefusalTest, RejectedWritesAreRetriedWithBackoff) {
  std::atomic<int> code{409};
  std::atomic<int> attempts{0};
  const FakeApi fake([&](const test::HttpRequest& request) -> std::optional<test::HttpResponse> {
    if (request.method == "GET") return std::nullopt;
    ++attempts;
    if (code == 409) return FakeApi::refusal(409, "Conflict", "the object has been modified");
    if (code == 429) return FakeApi::refusal(429, "TooManyRequests", "please try again later");
    return std::nullopt;
  });
  const auto clock = std::make_shared<test::FakeClock>();
  OneWriter writer(fake.client(), clock);
  const auto begin = clock->now();
  ASSERT_TRUE(eventually([&] {
    clock->advance(5ms);
    return attempts >= 1 && writer.others == 1;
  }));
  EXPECT_TRUE(eventually([&] {
    clock->advance(100ms);
    if (clock->now() - begin > 30s) code = 429;
    return clock->now() - begin > 60s;
  }));
  const int while_refused = attempts;
  // 5 ms, doubling: a minute has 13 of them.
  EXPECT_LE(while_refused, 15);
  EXPECT_EQ(writer.others, 1);
  code = 200;
  EXPECT_TRUE(eventually([&] {
    clock->advance(1s);
    return metric(writer.manager, "controller_runtime_reconcile_total", "success") == 2;
  }));
}

/// A response with Retry-After.
test::HttpResponse come_back_in(int seconds) {
  auto out = FakeApi::refusal(429, "TooManyRequests", "please try again later");
  out.headers.push_back("Retry-After: " + std::to_string(seconds));
  return out;
}

TEST_F(RefusalTest, RetryAfterIsHonouredAndTheWriteIsNotLost) {
  std::atomic<bool> busy{true};
  std::mutex mutex;
  std::vector<std::chrono::steady_clock::time_point> attempts;
  std::string last_body;
  const FakeApi fake([&](const test::HttpRequest& request) -> std::optional<test::HttpResponse> {
    if (request.method == "GET") return std::nullopt;
    const std::lock_guard lock(mutex);
    attempts.push_back(std::chrono::steady_clock::now());
    last_body = request.body;
    if (busy) return come_back_in(1);
    return std::nullopt;
  });
  OneWriter writer(fake.client());
  EXPECT_TRUE(eventually([&] {
    const std::lock_guard lock(mutex);
    return attempts.size() == 2;
  }));
  busy = false;
  EXPECT_TRUE(eventually([&] {
    return metric(writer.manager, "controller_runtime_reconcile_total", "success") == 2;
  }));
  const std::lock_guard lock(mutex);
  ASSERT_EQ(attempts.size(), 3u);
  for (std::size_t i = 1; i < attempts.size(); ++i)
    EXPECT_GE(attempts[i] - attempts[i - 1], 900ms) << i;
  EXPECT_THAT(last_body, HasSubstr(R"("a":"b")"));
}

TEST_F(RefusalTest, TheControllerHonoursRetryAfterBeyondTheClientsDeadline) {
  std::atomic<int> pause{45};
  std::atomic<int> attempts{0};
  const FakeApi fake([&](const test::HttpRequest& request) -> std::optional<test::HttpResponse> {
    if (request.method == "GET") return std::nullopt;
    ++attempts;
    if (pause > 0) return come_back_in(pause);
    return std::nullopt;
  });
  const auto clock = std::make_shared<test::FakeClock>();
  OneWriter writer(fake.client(), clock);
  const auto errors = [&] {
    return metric(writer.manager, "controller_runtime_reconcile_errors_total");
  };
  ASSERT_TRUE(eventually([&] {
    clock->advance(1ms);
    return errors() == 1 && writer.others == 1;
  }));
  const auto begin = clock->now();
  EXPECT_TRUE(eventually([&] {
    clock->advance(500ms);
    return errors() == 3;
  }));
  // Two pauses of the server's length, and a third one of the same length.
  EXPECT_GE(clock->now() - begin, 80s);
  EXPECT_EQ(attempts, 3);
  // A server cannot delay a request without limit.
  pause = 1'000'000;
  EXPECT_TRUE(eventually([&] {
    clock->advance(1s);
    return errors() == 4;
  }));
  pause = 0;
  const auto last = clock->now();
  EXPECT_TRUE(eventually([&] {
    clock->advance(1s);
    return metric(writer.manager, "controller_runtime_reconcile_total", "success") == 2;
  }));
  EXPECT_LE(clock->now() - last, 1h);
  EXPECT_EQ(attempts, 5);
}

// ------------------------------------------------------------------------ servers that hang

/// A server that never responds and keeps its connections open.
class FrozenServerTest : public ManagerFixture {
 protected:
  rest::Client through_the_relay(std::chrono::milliseconds timeout) const {
    rest::Config config;
    config.server = relay_.url();
    config.timeout = timeout;
    config.keepalive.probe_after = 300ms;
    config.keepalive.probe_timeout = 300ms;
    return rest::Client(config);
  }
  /// Copies "value" to "seen".
  static void copy(Request request, Context& context, std::atomic<int>& tries) {
    const auto map = context.find<ConfigMap>(request);
    if (!map || map->data()["seen"] == map->data()["value"]) return;
    ++tries;
    const auto change = map->edit();
    change.data().set("seen", map->data()["value"]);
    context.update(change);
  }
  bool copied(const std::string& name, const std::string& value) const {
    return test::held(maps_.get(name)).data()["seen"] == value;
  }

  test::TcpRelay relay_{server_.port()};
};

TEST_F(FrozenServerTest, CallsTimeOutReadinessFailsAndTheControllerContinues) {
  put("one", "1");
  const auto clock = std::make_shared<test::FakeClock>();
  ManagerOptions options;
  options.clock = clock;
  options.max_cache_staleness = 30s;
  Manager manager{through_the_relay(500ms), options};
  std::atomic<bool> ask{false};
  std::atomic<int> tries{0};
  std::atomic<int> timeouts{0};
  const auto channel = std::make_shared<Channel>();
  Builder<ConfigMap>(manager).source(channel).reconcile(
      [&](Request request, Context& context) -> Result {
        if (ask) {
          try {
            context.uncached().resource<ConfigMap>("default").get(request.name);
          } catch (const rest::TransportError& e) {
            if (e.kind() == rest::TransportError::Kind::kTimeout) ++timeouts;
            throw;
          }
        }
        copy(request, context, tries);
        return {};
      });
  const Running running(manager);
  ASSERT_TRUE(eventually([&] { return copied("one", "1"); }));
  EXPECT_EQ(manager.cache().check(30s), std::nullopt);

  relay_.freeze();
  ask = true;
  channel->send(Request("default", "one"));
  change("one", "2");  // the watch does not deliver it
  EXPECT_TRUE(eventually([&] {
    clock->advance(100ms);
    return timeouts >= 2;
  }));
  EXPECT_TRUE(eventually([&] {
    clock->advance(1s);
    return manager.cache().check(30s).value_or("").find("configmaps: last contact") !=
           std::string::npos;
  })) << manager.cache().check(30s).value_or("ok");
  EXPECT_TRUE(eventually([&] { return metric(manager, "informer_live", "configmaps") == 0; }));
  EXPECT_FALSE(running.ended());

  relay_.mend();
  EXPECT_TRUE(eventually([&] {
    clock->advance(1s);
    return copied("one", "2");
  }));
  EXPECT_TRUE(eventually([&] {
    clock->advance(10ms);
    return manager.cache().check(30s) == std::nullopt &&
           metric(manager, "informer_live", "configmaps") == 1;
  }));
}

TEST_F(FrozenServerTest, AStopIsBoundedWhileTheServerHangs) {
  put("one", "1");
  ManagerOptions options;
  options.graceful_shutdown_timeout = 1500ms;
  options.leader_election = LeaderElection{.name = "lease", .ns = "default"};
  // Then a single request of the election may take longer than the stop.
  options.leader_election->lease_duration = 90s;
  options.leader_election->renew_deadline = 60s;
  Manager manager{through_the_relay(1min), options};
  std::atomic<int> tries{0};
  Builder<ConfigMap>(manager).reconcile([&](Request request, Context& context) -> Result {
    // The write is not sent, because the reconciler is stopped instead.
    copy(request, context, tries);
    return {};
  });
  Running running(manager);
  ASSERT_TRUE(eventually([&] { return copied("one", "1"); }));
  relay_.freeze();
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_NO_THROW(running.stop());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 8s);
}

TEST_F(FrozenServerTest, AStopEndsAHangingWrite) {
  put("one", "1");
  ManagerOptions options;
  options.graceful_shutdown_timeout = 30s;
  Manager manager{through_the_relay(10min), options};
  std::atomic<int> tries{0};
  Builder<ConfigMap>(manager).reconcile([&](Request request, Context& context) -> Result {
    const auto map = context.find<ConfigMap>(request);
    if (map && map->data()["value"] == "2") relay_.freeze();
    copy(request, context, tries);
    return {};
  });
  Running running(manager);
  ASSERT_TRUE(eventually([&] { return copied("one", "1"); }));
  change("one", "2");
  ASSERT_TRUE(eventually([&] { return tries >= 2; }));
  EXPECT_TRUE(
      eventually([&] { return metric(manager, "controller_runtime_active_workers") == 1; }));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_NO_THROW(running.stop());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
}

TEST_F(FrozenServerTest, AManagerThatWaitsForItsFirstListsCanBeStopped) {
  std::atomic<int> requests{0};
  test::HttpServer silent([&](test::HttpConnection& connection) {
    while (connection.read_request()) ++requests;
  });
  rest::Config config;
  config.server = silent.url();
  config.timeout = 10min;
  Manager manager{rest::Client(config)};
  Builder<ConfigMap>(manager).reconcile([](Request, Context&) -> Result { return {}; });
  Running running(manager);
  ASSERT_TRUE(eventually([&] { return requests > 0; }));
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_NO_THROW(running.stop());
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
}

}  // namespace
}  // namespace lookout::controller
