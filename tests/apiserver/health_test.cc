// Health and metrics of the server.
#include <gtest/gtest.h>

#include <future>
#include <string>
#include <thread>

#include "tests/apiserver/client_fixture.h"
#include "tests/apiserver/http_client.h"
#include "tests/support/bounded_wait.h"
#include "tests/support/matchers.h"

namespace lookout::apiserver {
namespace {

class Health : public ClientTest {
 protected:
  HttpAnswer get(const std::string& path) const { return http(server_.port(), "GET", path); }
};

TEST_F(Health, IsOk) {
  for (const char* path : {"/healthz", "/livez", "/readyz", "/readyz/ping", "/healthz/storage"}) {
    const auto answer = get(path);
    EXPECT_EQ(answer.code, 200) << path;
    EXPECT_EQ(answer.body, "ok") << path;
    EXPECT_EQ(answer.headers.at("content-type"), "text/plain; charset=utf-8");
  }
  EXPECT_EQ(get("/livez/nothing").code, 404);
  EXPECT_EQ(get("/healthz/ping/more").code, 404);
}

TEST_F(Health, IsReportedInDetail) {
  EXPECT_EQ(get("/livez?verbose").body,
            "[+]ping ok\n[+]log ok\n[+]storage ok\nlivez check passed\n");
  EXPECT_EQ(get("/readyz?verbose=1&exclude=storage&exclude=x&exclude=a").body,
            "[+]ping ok\n[+]log ok\n[+]storage excluded: ok\n[+]shutdown ok\n"
            "warn: some health checks cannot be excluded: no matches for \"a\",\"x\"\n"
            "readyz check passed\n");
}

TEST(Shutdown, IsAnnouncedBeforeAnythingFails) {
  ServerOptions options;
  options.shutdown_delay = std::chrono::hours(1);
  Server server(options);
  HttpClient client(server.port());
  const auto answers = [&](const std::string& path) { return client.get(path); };
  EXPECT_EQ(answers("/readyz").code, 200);
  std::promise<void> stopping;
  std::thread stop([&] {
    stopping.set_value();
    server.stop();
  });
  test::wait_for(stopping.get_future());
  EXPECT_TRUE(test::eventually([&] { return answers("/readyz").code == 500; }));
  EXPECT_EQ(answers("/readyz").body,
            "[+]ping ok\n[+]log ok\n[+]storage ok\n[-]shutdown failed: reason withheld\n"
            "readyz check failed\n");
  // (Nothing is excluded from a single check.)
  const HttpAnswer one = answers("/readyz/shutdown?exclude=shutdown");
  EXPECT_EQ(one.code, 500);
  EXPECT_EQ(one.body, "internal server error: process is shutting down\n");
  // The server is still alive and serves.
  EXPECT_EQ(answers("/livez").code, 200);
  EXPECT_EQ(answers("/api/v1/namespaces/default").code, 200);
  // A second stop() ends the delay.
  server.stop();
  stop.join();
}

TEST_F(Health, HasMetrics) {
  in(kConfigMaps).create(config_map("a"));
  in(kConfigMaps).create(config_map("b"));
  EXPECT_EQ(get("/api/v1/namespaces/default/configmaps/nobody").code, 404);
  EXPECT_EQ(get("/api/v1/namespaces/default/configmaps").code, 200);
  EXPECT_EQ(get("/api/v1/namespaces/default/unicorns").code, 404);
  const auto answer = get("/metrics");
  EXPECT_EQ(answer.code, 200);
  EXPECT_THAT(answer.headers.at("content-type"), HasSubstr("text/plain"));
  EXPECT_THAT(answer.body, HasSubstr("# TYPE apiserver_request_total counter\n"));
  const auto line = [&](const std::string& name, std::initializer_list<const char*> labels) {
    for (std::size_t at = 0; at < answer.body.size();) {
      const std::size_t end = answer.body.find('\n', at);
      const std::string text = answer.body.substr(at, end - at);
      at = end + 1;
      if (text.rfind(name + "{", 0) != 0) continue;
      bool all = true;
      for (const char* label : labels) all = all && text.find(label) != std::string::npos;
      if (all) return text.substr(text.rfind(' ') + 1);
    }
    return std::string("none");
  };
  EXPECT_EQ(line("apiserver_request_total",
                 {R"(verb="POST")", R"(resource="configmaps")", R"(code="201")",
                  R"(scope="namespace")", R"(component="apiserver")"}),
            "2");
  EXPECT_EQ(
      line("apiserver_request_total", {R"(verb="GET")", R"(code="404")", R"(scope="resource")"}),
      "1");
  EXPECT_EQ(line("apiserver_request_duration_seconds_count",
                 {R"(verb="LIST")", R"(resource="configmaps")"}),
            "1");
  EXPECT_EQ(line("apiserver_storage_objects", {R"(resource="configmaps")"}), "2");
  EXPECT_EQ(line("apiserver_current_inflight_requests", {R"(request_kind="readOnly")"}), "1");
  // Names that a client made up appear in no metric.
  EXPECT_THAT(answer.body, Not(HasSubstr("unicorns")));
}

TEST_F(Health, CountsWatchers) {
  HttpClient client(server_.port());
  client.send(
      "GET /api/v1/configmaps?watch=1&resourceVersion=0 HTTP/1.1\r\nHost: localhost\r\n\r\n");
  in(kConfigMaps).create(config_map("a"));
  const std::string labels = R"(kind="ConfigMap",version="v1"})";
  EXPECT_TRUE(eventually([&] {
    const std::string text = get("/metrics").body;
    return text.find("apiserver_registered_watchers{group=\"\"," + labels + " 1\n") !=
               std::string::npos &&
           text.find("apiserver_watch_events_total{group=\"\"," + labels + " 1\n") !=
               std::string::npos;
  }));
  client.close();
  EXPECT_TRUE(eventually([&] {
    return get("/metrics")
               .body.find("apiserver_registered_watchers{group=\"\"," + labels + " 0\n") !=
           std::string::npos;
  }));
}

}  // namespace
}  // namespace lookout::apiserver
