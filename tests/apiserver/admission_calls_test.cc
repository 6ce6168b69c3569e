// Calls of admission webhooks: timeouts, failures, races with other changes, addresses.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <vector>

#include "lookout/base/base64.h"
#include "tests/apiserver/admission_fixture.h"
#include "tests/apiserver/http_client.h"
#include "tests/support/bounded_wait.h"
#include "tests/support/matchers.h"

namespace lookout::apiserver {
namespace {

using namespace std::chrono_literals;

TEST_F(AdmissionTest, AHangingWebhookTimesOut) {
  const TestWebhook hook([](const auto&) { return std::nullopt; });
  validate_with(hook, kMaps, R"("timeoutSeconds":1)");
  const auto begin = std::chrono::steady_clock::now();
  expect_refusal(
      500, fmt::format("Internal error occurred: failed calling webhook \"check.example.com\": "
                       "failed to call webhook: Post \"{}?timeout=1s\": context deadline exceeded",
                       hook.url()));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 8s);
  EXPECT_EQ(status_of([&] { maps().get("a"); }).code, 404);
}

TEST_F(AdmissionTest, AHangingWebhookCanBeIgnored) {
  const TestWebhook hook([](const auto&) { return std::nullopt; });
  mutate_with(hook, kMaps, R"("timeoutSeconds":1,"failurePolicy":"Ignore")");
  EXPECT_NO_THROW(maps().create(config_map("a")));
  EXPECT_EQ(hook.reviews().size(), 1u);
}

TEST_F(AdmissionTest, OtherRequestsAreServedWhileAWebhookHangs) {
  const TestWebhook hook([](const auto&) { return std::nullopt; });
  validate_with(hook, kMaps, R"("timeoutSeconds":3,"failurePolicy":"Ignore")");
  // More writers than the server has threads.
  std::vector<std::future<void>> writers;
  writers.reserve(6);
  for (int i = 0; i < 6; ++i) {
    writers.push_back(std::async(std::launch::async, [this, i] {
      const rest::Client own(server_.client_config());
      own.resource(kConfigMaps, "default").create(config_map(fmt::format("m{}", i)));
    }));
  }
  ASSERT_TRUE(eventually([&] { return hook.reviews().size() == 6; }));
  EXPECT_NO_THROW(pods().create(pod("a")));
  EXPECT_EQ(writers[0].wait_for(0s), std::future_status::timeout);
  for (auto& writer : writers) EXPECT_NO_THROW(test::get(writer));
}

TEST_F(AdmissionTest, ValidatingWebhooksAreCalledConcurrently) {
  std::atomic<int> waiting{0};
  std::atomic<bool> met{false};
  const auto answer = [&](const api::Object& review) {
    ++waiting;
    for (int i = 0; i < 1000 && waiting < 2; ++i) std::this_thread::sleep_for(10ms);
    if (waiting == 2) met = true;
    return allowed(review);
  };
  const TestWebhook one(answer);
  const TestWebhook two(answer);
  all(kValidating)
      .create(configuration("both", webhook("one.example.com", one.client_config(), kMaps) + "," +
                                        webhook("two.example.com", two.client_config(), kMaps)));
  EXPECT_NO_THROW(maps().create(config_map("a")));
  EXPECT_TRUE(met);
}

TEST_F(AdmissionTest, AWebhookOfAnotherAuthorityIsNotTrusted) {
  const TestWebhook hook([](const auto& review) { return allowed(review); });
  const test::CertificateAuthority other;
  const std::string config =
      fmt::format(R"("url":"{}","caBundle":"{}")", hook.url(), encode_base64(other.certificate()));
  all(kValidating).create(configuration("a", webhook("a.example.com", config, kMaps)));
  expect_refusal(500, StartsWith("Internal error occurred: failed calling webhook "
                                 "\"a.example.com\": failed to call webhook: Post "));
  EXPECT_TRUE(hook.reviews().empty());
}

TEST_F(AdmissionTest, ACertificateForAnotherNameIsNotTrusted) {
  const TestWebhook hook([](const auto& review) { return allowed(review); },
                         {"DNS:elsewhere.test"});
  validate_with(hook);
  EXPECT_EQ(refused_write().code, 500);
  EXPECT_TRUE(hook.reviews().empty());
}

TEST_F(AdmissionTest, GarbageIsAFailureOfTheCall) {
  const TestWebhook hook([](const auto&) { return "garbage"; });
  validate_with(hook);
  expect_refusal(500, StartsWith("Internal error occurred: failed calling webhook "
                                 "\"check.example.com\": failed to call webhook: "));
}

TEST_F(AdmissionTest, AResponseWithAnotherUidIsAFailureOfTheCall) {
  const TestWebhook hook([](const auto&) {
    return R"({"kind":"AdmissionReview","apiVersion":"admission.k8s.io/v1",)"
           R"("response":{"uid":"other","allowed":true}})";
  });
  validate_with(hook, kMaps, R"("failurePolicy":"Fail")");
  expect_refusal(500, HasSubstr("received invalid webhook response: expected response.uid="));
}

TEST_F(AdmissionTest, AnUnreachableWebhookIsAFailureOfTheCall) {
  std::string config;
  {
    const TestWebhook gone([](const auto& review) { return allowed(review); });
    config = gone.client_config();
  }
  all(kMutating).create(configuration("a", webhook("a.example.com", config, kMaps)));
  EXPECT_EQ(refused_write().code, 500);
}

TEST_F(AdmissionTest, AConcurrentChangeRepeatsTheCall) {
  maps().create(config_map("a", "1"));
  std::atomic<int> calls{0};
  const TestWebhook hook([&](const api::Object& review) {
    if (review["request"]["userInfo"]["username"].as_string() == "other") return allowed(review);
    if (++calls == 1) {
      rest::Config config = server_.client_config();
      config.as.user = "other";
      const rest::Client other(config);
      other.resource(kConfigMaps, "default")
          .patch("a", rest::PatchType::kMerge, R"({"data":{"other":"x"}})");
    }
    return allowed(review);
  });
  validate_with(hook);
  maps().patch("a", rest::PatchType::kMerge, R"({"data":{"key":"2"}})");
  EXPECT_EQ(calls, 2);
  EXPECT_EQ(item("a", "key"), "2");
  EXPECT_EQ(item("a", "other"), "x");
}

TEST_F(AdmissionTest, AnUpdateOfAnOldVersionIsAConflictAfterTheCall) {
  const api::Object made = maps().create(config_map("a", "1"));
  std::atomic<int> calls{0};
  const TestWebhook hook([&](const api::Object& review) {
    if (++calls == 1) {
      const rest::Client other(server_.client_config());
      other.resource(kConfigMaps, "default")
          .patch("a", rest::PatchType::kMerge, R"({"data":{"other":"x"}})");
    }
    return allowed(review);
  });
  validate_with(hook);
  EXPECT_EQ(status_of([&] { maps().update(changed(made, R"({"data":{"key":"2"}})")); }).code, 409);
  EXPECT_EQ(item("a", "key"), "1");
}

TEST_F(AdmissionTest, ADisconnectEndsTheCall) {
  const TestWebhook hook([](const auto&) { return std::nullopt; });
  validate_with(hook, kMaps, R"("timeoutSeconds":30,"failurePolicy":"Ignore")");
  HttpClient client(server_.port());
  const std::string body = R"({"metadata":{"name":"a"}})";
  client.send(
      fmt::format("POST /api/v1/namespaces/default/configmaps HTTP/1.1\r\nHost: localhost\r\n"
                  "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{}",
                  body.size(), body));
  ASSERT_TRUE(eventually([&] { return hook.reviews().size() == 1; }));
  const auto failures = server_.stats().failures;
  client.close();
  EXPECT_TRUE(eventually([&] { return server_.stats().failures > failures; }));
  // The client has disconnected, so it is not written, although failures of the webhook are ignored.
  EXPECT_EQ(status_of([&] { maps().get("a"); }).code, 404);
}

TEST(Admission, TheServerStopsWhileACallRuns) {
  const TestWebhook hook([](const auto&) { return std::nullopt; });
  auto server = std::make_unique<Server>();
  const rest::Client client(server->client_config());
  client.resource(kValidating)
      .create(configuration(
          "a", webhook("a.example.com", hook.client_config(), kMaps, R"("timeoutSeconds":30)")));
  auto writer = std::async(
      std::launch::async, [&] { client.resource(kConfigMaps, "default").create(config_map("a")); });
  ASSERT_TRUE(eventually([&] { return hook.reviews().size() == 1; }));
  const auto begin = std::chrono::steady_clock::now();
  server->stop(100ms);
  server.reset();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 10s);
  EXPECT_ANY_THROW(test::get(writer));
}

TEST(Admission, AServiceIsFoundByTheServersOptions) {
  const TestWebhook hook([](const auto& review) { return denied(review, "found"); },
                         {"DNS:hook.shop.svc"});
  ServerOptions options;
  options.resolve_service = [&](const std::string& ns, const std::string& name,
                                std::uint16_t port) -> std::optional<std::string> {
    if (ns != "shop" || name != "hook" || port != 8443) return std::nullopt;
    return fmt::format("127.0.0.1:{}", hook.port());
  };
  Server server(options);
  const rest::Client client(server.client_config());
  const std::string config = fmt::format(
      R"("service":{{"namespace":"shop","name":"hook","port":8443,"path":"/check"}},"caBundle":"{}")",
      hook.ca_bundle());
  client.resource(kValidating).create(configuration("a", webhook("a.example.com", config, kMaps)));
  const auto maps = client.resource(kConfigMaps, "default");
  EXPECT_EQ(status_of([&] { maps.create(config_map("a")); }).message,
            "admission webhook \"a.example.com\" denied the request: found");
  EXPECT_EQ(hook.latest_target(), "/check?timeout=10s");
}

TEST_F(AdmissionTest, AServiceIsFoundByItsEndpoints) {
  const TestWebhook hook([](const auto& review) { return denied(review, "found"); },
                         {"DNS:hook.default.svc"});
  const std::string config = fmt::format(
      R"("service":{{"namespace":"default","name":"hook"}},"caBundle":"{}")", hook.ca_bundle());
  all(kValidating).create(configuration("a", webhook("a.example.com", config, kMaps)));
  const auto message = [&] { return refused_write().message; };
  const std::string failed =
      "Internal error occurred: failed calling webhook \"a.example.com\": failed to call webhook: ";
  EXPECT_EQ(message(), failed + "service \"hook\" not found");
  in(kServices).create(from_json(
      R"({"metadata":{"name":"hook"},"spec":{"clusterIP":"None","ports":[{"port":80}]}})"));
  EXPECT_EQ(message(), failed + "no service port 443 found for service \"hook\"");
  in(kServices).patch("hook", rest::PatchType::kMerge,
                      R"({"spec":{"ports":[{"port":443,"name":"https"}]}})");
  EXPECT_EQ(message(), failed + "no endpoints available for service \"hook\"");
  const api::Resource slices{"discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", true};
  // (Only the server itself may have a loopback address.)
  in(slices).create(from_json(fmt::format(
      R"({{"metadata":{{"name":"kubernetes","labels":{{"kubernetes.io/service-name":"hook"}}}},)"
      R"("addressType":"IPv4","ports":[{{"name":"https","port":{}}}],)"
      R"("endpoints":[{{"addresses":["192.0.2.1"],"conditions":{{"ready":false}}}},)"
      R"({{"addresses":["127.0.0.1"]}}]}})",
      hook.port())));
  EXPECT_EQ(message(), "admission webhook \"a.example.com\" denied the request: found");
}

}  // namespace
}  // namespace lookout::apiserver
