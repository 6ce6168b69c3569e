// The responses and events of `lookout registry serve`.
#include "cmd/registry/page/page_server.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidjson/document.h>
#include <rapidjson/stringbuffer.h>
#include <rapidjson/writer.h>

#include <mutex>

#include "cmd/registry/page/document.h"
#include "tests/apiserver/http_client.h"
#include "tests/page/fake_discovery.h"
#include "tests/support/eventually.h"
#include "tests/support/matchers.h"

namespace lookout::cmd::registry_cmd {
namespace {

using namespace std::chrono_literals;
using apiserver::HttpAnswer;
using apiserver::HttpClient;
using lookout::test::eventually;
using registry::test::FakeDiscovery;
using registry::test::Instances;
using testing::Le;

rapidjson::Document parse(const std::string& json) {
  rapidjson::Document out;
  out.Parse(json.data(), json.size());
  if (out.HasParseError()) throw std::runtime_error("no JSON: " + json);
  return out;
}

std::string json_of(const rapidjson::Value& value) {
  rapidjson::StringBuffer buffer;
  rapidjson::Writer<rapidjson::StringBuffer> writer(buffer);
  value.Accept(writer);
  return buffer.GetString();
}

/// Makes a request; returns the response.
HttpAnswer ask(std::uint16_t port, const std::string& method, const std::string& target,
               const std::string& host = "127.0.0.1") {
  HttpClient client(port);
  client.send(method + " " + target + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n");
  return client.read_answer();
}

/// A browser with an event stream and its state.
class Listener {
 public:
  explicit Listener(std::uint16_t port, int receive_buffer = 0) : client_(port) {
    if (receive_buffer > 0) {
      setsockopt(client_.socket().native_handle(), SOL_SOCKET, SO_RCVBUF, &receive_buffer,
                 sizeof receive_buffer);
    }
    // (HTTP/1.0: no chunked encoding, so the received bytes are the data.)
    client_.send("GET /api/events HTTP/1.0\r\nHost: localhost\r\n\r\n");
  }

  /// The next event: its name, and its data.
  std::pair<std::string, std::string> next_event() {
    std::size_t end = 0;
    while ((end = text_.find("\n\n")) == std::string::npos) text_ += client_.read_some();
    const std::string event = text_.substr(0, end + 1);
    text_.erase(0, end + 2);
    return {field(event, "event: "), field(event, "data: ")};
  }

  /// Applies the next update.
  void take() {
    auto [name, data] = next_event();
    while (name != "update") std::tie(name, data) = next_event();
    const auto update = parse(data);
    ++updates;
    reset = update["reset"].GetBool();
    synced = update["synced"].GetBool();
    live = update["live"].GetBool();
    since = update["since"].GetInt64();
    error = update["error"].GetString();
    if (update.HasMember("problems")) problems = json_of(update["problems"]);
    if (update.HasMember("pods")) pods = json_of(update["pods"]);
    if (update.HasMember("traffic")) traffic = json_of(update["traffic"]);
    if (reset) services.clear();
    put = dropped = 0;
    for (const auto& gone : update["gone"].GetArray()) services.erase(gone.GetString());
    for (const auto& service : update["services"].GetArray()) {
      Instances& instances = services[service["name"].GetString()];
      for (const auto& key : service["drop"].GetArray()) {
        instances.erase(key.GetString());
        ++dropped;
      }
      for (const auto& instance : service["put"].GetArray()) {
        instances[instance["pod"].GetString()] = instance["version"].GetString();
        ++put;
      }
    }
  }
  void take_until(const std::map<std::string, Instances>& wanted) {
    while (services != wanted) take();
  }

  HttpClient& client() { return client_; }

  std::map<std::string, Instances> services;
  std::size_t updates = 0;
  // From the last update.
  bool reset = false;
  bool synced = false;
  bool live = false;
  std::int64_t since = 0;
  std::string error;
  // From the last update that had them, as JSON.
  std::string problems;
  std::string pods;
  std::string traffic;
  std::size_t put = 0;
  std::size_t dropped = 0;

 private:
  static std::string field(const std::string& event, const std::string& name) {
    const auto at = event.find(name);
    if (at == std::string::npos) return {};
    return event.substr(at + name.size(), event.find('\n', at) - at - name.size());
  }

  HttpClient client_;
  std::string text_;
};

/// A test's notes. Set on its thread, read on the catalog's thread.
class FakeNotes {
 public:
  NoteSources sources() {
    return {.problems = [this] { return get(problems_); },
            .pods = [this] { return get(pods_); },
            .traffic = [this] { return get(traffic_); }};
  }
  void set(std::vector<Problem> problems) { put(problems_, std::move(problems)); }
  void set(PodFacts pods) { put(pods_, std::make_shared<const PodFacts>(std::move(pods))); }
  void set(Traffic traffic) { put(traffic_, std::make_shared<const Traffic>(std::move(traffic))); }

 private:
  template <class T>
  T get(const T& from) {
    const std::lock_guard lock(mutex_);
    return from;
  }
  template <class T, class U>
  void put(T& to, U value) {
    const std::lock_guard lock(mutex_);
    to = std::move(value);
  }

  std::mutex mutex_;
  std::vector<Problem> problems_;
  PodFactsPtr pods_ = std::make_shared<const PodFacts>();
  TrafficPtr traffic_;
};

class PageServerTest : public testing::Test {
 protected:
  static PageOptions quick() {
    PageOptions options;
    options.interval = 2ms;
    return options;
  }
  void serve(PageOptions options = quick()) {
    server_.emplace(discovery_, std::move(options));
    server_->start();
  }
  HttpAnswer get(const std::string& target, const std::string& host = "127.0.0.1") {
    return ask(server_->port(), "GET", target, host);
  }
  /// Retries until the services have been loaded.
  HttpAnswer get_when_there(const std::string& target) {
    HttpAnswer answer;
    EXPECT_TRUE(eventually([&] { return (answer = get(target)).code == 200; }));
    return answer;
  }

  std::shared_ptr<FakeDiscovery> discovery_ = std::make_shared<FakeDiscovery>();
  FakeNotes notes_;
  std::optional<PageServer> server_;
};

// ------------------------------------------------------------------------------------- the page

TEST_F(PageServerTest, ThePageLoadsNothingFromElsewhere) {
  serve();
  const auto page = get("/");
  EXPECT_EQ(page.code, 200);
  EXPECT_EQ(page.headers.at("content-type"), "text/html; charset=utf-8");
  EXPECT_EQ(page.body, page_html());
  EXPECT_THAT(page.body, AllOf(StartsWith("<!doctype html>"), HasSubstr("</html>")));
  for (const char* outside :
       {"src=\"", "@import", "url(", "https://", " style=\"", " onclick=", "eval("}) {
    EXPECT_THAT(page.body, Not(HasSubstr(outside)));
  }
  for (const char* markup :
       {"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "@LOOKOUT"}) {
    EXPECT_THAT(page.body, Not(HasSubstr(markup)));
  }
}

TEST_F(PageServerTest, HeadersRestrictThePage) {
  serve();
  discovery_->set("web", {});
  get_when_there("/api/services");
  for (const char* target : {"/", "/api/services", "/healthz", "/nowhere"}) {
    const auto answer = get(target);
    const std::string& policy = answer.headers.at("content-security-policy");
    EXPECT_THAT(policy, AllOf(StartsWith("default-src 'none'; script-src 'sha256-"),
                              HasSubstr("style-src 'sha256-"), HasSubstr("connect-src 'self'"),
                              HasSubstr("frame-ancestors 'none'"), Not(HasSubstr("unsafe"))));
    EXPECT_EQ(answer.headers.at("x-content-type-options"), "nosniff");
    EXPECT_EQ(answer.headers.at("referrer-policy"), "no-referrer");
    EXPECT_EQ(answer.headers.at("cross-origin-resource-policy"), "same-origin");
    EXPECT_EQ(answer.headers.count("access-control-allow-origin"), 0u);
  }
}

TEST(PagePolicy, NamesTheScriptByItsHash) {
  // printf %s 'hello' | openssl dgst -sha256 -binary | base64
  EXPECT_THAT(content_security_policy("<style>hello</style><script>hello</script>"),
              AllOf(HasSubstr("script-src 'sha256-LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=';"),
                    HasSubstr("style-src 'sha256-LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ=';")));
}

TEST_F(PageServerTest, IsReadOnly) {
  serve();
  for (const char* method : {"POST", "PUT", "PATCH", "DELETE", "OPTIONS"}) {
    const auto answer = ask(server_->port(), method, "/api/services");
    EXPECT_EQ(answer.code, 405) << method;
    EXPECT_EQ(answer.headers.at("allow"), "GET, HEAD");
  }
  EXPECT_EQ(get("/nowhere").code, 404);
  EXPECT_EQ(get("/api/servicesx").code, 404);
  EXPECT_EQ(get("/healthz").code, 200);
}

// ------------------------------------------------------------------------------------ host names

TEST_F(PageServerTest, IsNotServedUnderAForeignName) {
  auto options = quick();
  options.allowed_hosts = {"services.example.com"};
  serve(options);
  for (const char* target : {"/", "/api/services", "/api/events", "/healthz"}) {
    const auto answer = get(target, "evil.example.com");
    EXPECT_EQ(answer.code, 403) << target;
    EXPECT_THAT(answer.body, HasSubstr("--allow-host"));
  }
  EXPECT_EQ(get("/", "services.example.com:80").code, 200);
  HttpClient nameless(server_->port());
  nameless.send("GET / HTTP/1.0\r\n\r\n");
  EXPECT_EQ(nameless.read_answer().code, 403);
}

// -------------------------------------------------------------------------------------- as JSON

TEST_F(PageServerTest, ServesServicesAsJson) {
  serve();
  discovery_->set("web", {{"shop/web-1", "v1"}, {"shop/web-2", "v2"}});
  discovery_->set("shop/cart & co", {});
  const auto all = parse(get_when_there("/api/services").body);
  ASSERT_TRUE(all.IsArray());
  EXPECT_TRUE(eventually([&] { return parse(get("/api/services").body).Size() == 2; }));
  const auto web = parse(get_when_there("/api/services/web").body);
  EXPECT_STREQ(web["service"].GetString(), "web");
  EXPECT_TRUE(web["live"].GetBool());
  ASSERT_EQ(web["instances"].Size(), 2u);
  EXPECT_STREQ(web["instances"][1]["pod"].GetString(), "shop/web-2");
  EXPECT_STREQ(web["instances"][1]["version"].GetString(), "v2");
  EXPECT_TRUE(web["instances"][1]["ready"].GetBool());
  EXPECT_EQ(get("/api/services/shop/cart%20%26%20co").code, 200);
  EXPECT_EQ(get("/api/services/nothing").code, 404);
}

TEST_F(PageServerTest, ReportsThatThereIsNoDataYet) {
  discovery_->set_synced(false);
  discovery_->set_freshness({});
  serve();
  EXPECT_EQ(get("/api/services").code, 503);
  EXPECT_EQ(get("/api/services/web").code, 503);
  Listener listener(server_->port());
  discovery_->set("web", {{"a", "v1"}});
  discovery_->set_synced(true);
  listener.take_until({{"web", {{"a", "v1"}}}});
  EXPECT_TRUE(listener.synced);
}

// --------------------------------------------------------------------------------------- events

TEST_F(PageServerTest, SendsTheFullStateThenDifferences) {
  discovery_->set("cart", {{"a", "v1"}});
  discovery_->set("web", {{"a", "v1"}, {"b", "v1"}, {"c", "v1"}});
  auto options = quick();
  options.source = "\"kratos\"";
  serve(options);
  Listener listener(server_->port());
  const auto [name, about] = listener.next_event();
  EXPECT_EQ(name, "about");
  EXPECT_STREQ(parse(about)["source"].GetString(), "\"kratos\"");
  const Instances cart{{"a", "v1"}};
  listener.take_until({{"cart", cart}, {"web", {{"a", "v1"}, {"b", "v1"}, {"c", "v1"}}}});
  EXPECT_TRUE(listener.reset);

  discovery_->set("web", {{"a", "v1"}, {"b", "v2"}, {"d", "v1"}});
  listener.take_until({{"cart", cart}, {"web", {{"a", "v1"}, {"b", "v2"}, {"d", "v1"}}}});
  EXPECT_FALSE(listener.reset);
  EXPECT_EQ(listener.put, 2u);
  EXPECT_EQ(listener.dropped, 1u);

  discovery_->remove("cart");
  discovery_->set("user", {});
  listener.take_until({{"user", {}}, {"web", {{"a", "v1"}, {"b", "v2"}, {"d", "v1"}}}});
  EXPECT_EQ(listener.put, 0u);

  // A later client starts with the full state.
  Listener late(server_->port());
  late.take();
  EXPECT_TRUE(late.reset);
  EXPECT_EQ(late.services, listener.services);
}

TEST_F(PageServerTest, SendsWhetherTheDataIsFresh) {
  discovery_->set("web", {{"a", "v1"}});
  serve();
  Listener listener(server_->port());
  listener.take_until({{"web", {{"a", "v1"}}}});
  EXPECT_TRUE(listener.live);
  discovery_->set_freshness({false, std::chrono::system_clock::time_point(1700000000s)});
  while (listener.live) listener.take();
  EXPECT_EQ(listener.since, 1'700'000'000'000);
  EXPECT_EQ(listener.put, 0u);
  EXPECT_THAT(listener.services, SizeIs(1)) << "what was known last is kept";
  discovery_->set_freshness({true, std::chrono::system_clock::time_point(1700000060s)});
  while (!listener.live) listener.take();
  EXPECT_EQ(listener.since, 1'700'000'060'000);
}

TEST_F(PageServerTest, SendsWhyTheDataIsStale) {
  discovery_->set("web", {});
  serve();
  Listener listener(server_->port());
  listener.take();
  EXPECT_EQ(listener.error, "");
  const std::chrono::system_clock::time_point since(1700000000s);
  discovery_->set_freshness({false, since, "no route"});
  while (listener.live) listener.take();
  EXPECT_EQ(listener.error, "no route");
  discovery_->set_freshness({false, since, "pods is forbidden"});
  while (listener.error == "no route") listener.take();
  EXPECT_EQ(listener.error, "pods is forbidden");
}

TEST_F(PageServerTest, SendsProblemsAndTheStateOfPods) {
  auto options = quick();
  options.notes = notes_.sources();
  serve(options);
  Listener listener(server_->port());
  notes_.set(std::vector<Problem>{
      {.kind = "namespace", .where = "shop", .reason = "forbidden", .code = 403}});
  while (listener.problems.empty() || listener.problems == "[]") listener.take();
  EXPECT_EQ(listener.problems,
            R"([{"kind":"namespace","where":"shop","service":"","reason":"forbidden",)"
            R"("code":403,"at":0}])");
  notes_.set(PodFacts{{"shop/a", {.leaving = true}}, {"shop/b", {.why = "full"}}});
  while (listener.pods.empty() || listener.pods == "{}") listener.take();
  EXPECT_EQ(listener.pods,
            R"({"shop/a":{"leaving":true,"why":""},"shop/b":{"leaving":false,"why":"full"}})");
  // Then only the difference.
  listener.pods.clear();
  notes_.set(PodFacts{{"shop/b", {.why = "full"}}, {"shop/c", {.leaving = true}}});
  while (listener.pods.empty()) listener.take();
  EXPECT_EQ(listener.pods, R"({"shop/c":{"leaving":true,"why":""},"shop/a":null})");
  Listener late(server_->port());
  late.take();
  EXPECT_EQ(late.pods,
            R"({"shop/b":{"leaving":false,"why":"full"},"shop/c":{"leaving":true,"why":""}})");
  EXPECT_EQ(late.problems, listener.problems);
}

TEST_F(PageServerTest, SendsTraffic) {
  auto options = quick();
  options.notes = notes_.sources();
  serve(options);
  Listener listener(server_->port());
  Traffic traffic{.asked = 3, .answered = 2};
  traffic.services["web"].all = {1.5, 0.25, 1, 2};
  traffic.services["web"].instances["shop/a"] = {1.5, 0.25, 2, 2};
  notes_.set(traffic);
  while (listener.traffic.empty()) listener.take();
  EXPECT_EQ(listener.traffic, R"({"asked":3,"answered":2,"services":{"web":{"all":[1.5,0.25,1,2],)"
                              R"("instances":{"shop/a":[1.5,0.25,2,2]}}}})");
}

TEST_F(PageServerTest, KeepsAHistoryOfEachService) {
  discovery_->set("shop/web", {{"shop/a", "v1"}});
  serve();
  Listener listener(server_->port());
  listener.take_until({{"shop/web", {{"shop/a", "v1"}}}});
  EXPECT_EQ(get("/api/history/shop/web").body, "{\"service\":\"shop/web\",\"changes\":[]}\n");
  discovery_->set("shop/web", {{"shop/a", "v2"}});
  listener.take_until({{"shop/web", {{"shop/a", "v2"}}}});
  const auto history = parse(get("/api/history/shop/web").body);
  ASSERT_EQ(history["changes"].Size(), 1u);
  const auto& change = history["changes"][0];
  EXPECT_STREQ(change["pod"].GetString(), "shop/a");
  EXPECT_STREQ(change["event"].GetString(), "changed");
  EXPECT_STREQ(change["detail"].GetString(), "version v1 → v2");
  EXPECT_GT(change["at"].GetInt64(), 1'700'000'000'000);
  EXPECT_EQ(get("/api/history/shop/web", "evil.example.com").code, 403);
}

TEST_F(PageServerTest, SendsKeepAlives) {
  auto options = quick();
  options.heartbeat = 5ms;
  serve(options);
  Listener listener(server_->port());
  std::string event;
  while (event != "alive") event = listener.next_event().first;
  while (listener.next_event().first != "alive") {
  }
}

/// The size of a small buffer.
constexpr int kSmall = 64 * 1024;

/// Enough instances that their description exceeds every buffer.
Instances many(const std::string& version) {
  Instances out;
  for (int i = 0; i < 40'000; ++i) out[fmt::format("default/a-pod-with-a-name-{}", i)] = version;
  return out;
}

TEST_F(PageServerTest, ASlowBrowserDoesNotBlockOthersAndGetsTheLatestState) {
  discovery_->set("web", many("v0"));
  discovery_->set("last", {{"a", "0"}});
  serve();
  Listener quick_one(server_->port());
  quick_one.take();
  Listener slow(server_->port(), kSmall);
  while (slow.next_event().first != "about") {
  }
  constexpr int kChanges = 40;
  for (int i = 1; i <= kChanges; ++i) {
    discovery_->set("last", {{"a", std::to_string(i)}});
    while (quick_one.services["last"]["a"] != std::to_string(i)) quick_one.take();
  }
  EXPECT_GE(quick_one.updates, static_cast<std::size_t>(kChanges));
  // It receives the initial state, and then one update.
  slow.take_until(quick_one.services);
  EXPECT_THAT(slow.updates, Le(2u));
}

TEST_F(PageServerTest, ABrowserThatNeverReadsIsDisconnected) {
  discovery_->set("web", many("v0"));
  auto options = quick();
  options.write_timeout = 50ms;
  serve(options);
  Listener slow(server_->port(), kSmall);
  EXPECT_TRUE(eventually([&] { return server_->connections() == 1; }));
  EXPECT_TRUE(eventually([&] { return server_->connections() == 0; }));
}

TEST_F(PageServerTest, DisconnectedBrowsersAreReleased) {
  discovery_->set("web", {{"a", "v1"}});
  serve();
  for (int i = 0; i < 50; ++i) {
    Listener listener(server_->port());
    listener.take();
    discovery_->set("web", {{"a", std::to_string(i)}});
  }
  EXPECT_TRUE(eventually([&] { return server_->connections() == 0; }));
}

TEST_F(PageServerTest, StopsWhileBrowsersListen) {
  discovery_->set("web", many("v0"));
  serve();
  Listener listener(server_->port());
  listener.take();
  Listener stuck(server_->port(), kSmall);
  stuck.next_event();
  server_->stop(200ms);
  EXPECT_EQ(listener.client().read_to_end().find("event: update"), std::string::npos);
  EXPECT_THROW(HttpClient client(server_->port()), boost::system::system_error);
}

TEST_F(PageServerTest, ReportsThatAnAddressIsInUse) {
  serve();
  auto options = quick();
  options.listen.port = server_->port();
  EXPECT_THAT([&] { PageServer other(discovery_, options); },
              testing::ThrowsMessage<Error>(HasSubstr("cannot listen on 127.0.0.1:")));
}

}  // namespace
}  // namespace lookout::cmd::registry_cmd
