// Admission webhooks, over HTTPS.
#include "lookout/controller/webhook.h"

#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/bind_cancellation_slot.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/post.hpp>
#include <boost/asio/read.hpp>
#include <boost/asio/read_until.hpp>
#include <boost/asio/strand.hpp>
#include <boost/asio/write.hpp>
#include <chrono>
#include <cstdint>
#include <exception>
#include <functional>
#include <future>
#include <latch>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "lookout/base/base64.h"
#include "lookout/base/clock.h"
#include "tests/controller/webhook_testing.h"
#include "tests/support/eventually.h"
#include "tests/support/gate.h"
#include "tests/support/hold_up.h"
#include "tests/support/matchers.h"
#include "tests/support/thrown.h"

namespace lookout::controller {
namespace {

using namespace std::chrono_literals;
using api::Object;

class WebhookTest : public WebhookFixture {
 protected:
  HttpsAnswer ask(const WebhookServer& server, const std::string& path,
                  const std::string& body) const {
    return caller(server)({.path = path, .body = body});
  }
  /// The `response` of a review.
  Object admit(const WebhookServer& server, const std::string& path,
               const std::string& body) const {
    const HttpsAnswer answer = ask(server, path, body);
    EXPECT_EQ(answer.status, 200) << answer.body;
    return answer.status == 200 ? answer.object() : Object();
  }
  static bool is_allowed(const Object& answer) { return answer["response"]["allowed"].as_bool(); }
  static std::string patch_in(const Object& answer) {
    return decode_base64(answer["response"]["patch"].as_string()).value_or("");
  }
};

TEST_F(WebhookTest, PathsEqualThoseOfControllerRuntime) {
  const api::Resource website(Website::kResource);
  EXPECT_EQ(WebhookServer::validate_path(website), "/validate-example-com-v1-website");
  EXPECT_EQ(WebhookServer::mutate_path(website), "/mutate-example-com-v1-website");
  EXPECT_EQ(WebhookServer::validate_path({"", "v1", "Pod", "pods", true}), "/validate--v1-pod");
}

TEST_F(WebhookTest, AValidatorAllowsOrDenies) {
  WebhookServer server(loop_, options());
  server.validate<Website>([](const Admission<Website>& request) {
    if (request.object.replicas() > request.old_object.replicas() + 1)
      return denied("one more at a time").warn("slowly");
    return allowed();
  });
  const Serving serving(server);
  const std::string path = "/validate-example-com-v1-website";
  const Object fine = admit(server, path, review("uid-1", "UPDATE", website(2), website(1)));
  EXPECT_EQ(fine["response"]["uid"].as_string(), "uid-1");
  EXPECT_TRUE(is_allowed(fine));
  EXPECT_FALSE(fine["response"]["patch"].exists());

  const Object refused = admit(server, path, review("uid-2", "UPDATE", website(5), website(1)));
  EXPECT_EQ(refused["response"]["uid"].as_string(), "uid-2");
  EXPECT_FALSE(is_allowed(refused));
  EXPECT_EQ(refused["response"]["status"]["code"].as_int(), 403);
  EXPECT_EQ(refused["response"]["status"]["message"].as_string(), "one more at a time");
  EXPECT_EQ(refused["response"]["warnings"][0].as_string(), "slowly");
  EXPECT_EQ(metric(server, "controller_runtime_webhook_requests_total",
                   {{"webhook", path}, {"code", "200"}}),
            2);
  EXPECT_EQ(metric(server, "controller_runtime_webhook_latency_seconds", {{"webhook", path}}), 2);
  EXPECT_EQ(metric(server, "controller_runtime_webhook_requests_in_flight", {{"webhook", path}}),
            0);
}

TEST_F(WebhookTest, AMutationIsAPatchOfTheEdits) {
  WebhookServer server(loop_, options());
  server.mutate<Website>([](const Admission<Website>& request, api::ObjectDraft& draft) {
    if (request.object.replicas() == 0) draft["spec"]["replicas"].set(3);
  });
  const Serving serving(server);
  const std::string path = "/mutate-example-com-v1-website";
  const Object changed = admit(server, path, review("1", "CREATE", website(0)));
  EXPECT_TRUE(is_allowed(changed));
  EXPECT_EQ(changed["response"]["patchType"].as_string(), "JSONPatch");
  EXPECT_EQ(patch_in(changed), R"([{"value":3,"path":"/spec/replicas","op":"replace"}])");
  const Object unchanged = admit(server, path, review("2", "CREATE", website(1)));
  EXPECT_TRUE(is_allowed(unchanged));
  EXPECT_FALSE(unchanged["response"]["patch"].exists());
}

TEST_F(WebhookTest, EmptyHandlersAreRefused) {
  WebhookServer server(loop_, options());
  using Request = Admission<Website>;
  const std::function<AdmissionResponse(const Request&)> validator;
  const std::function<Awaitable<AdmissionResponse>(const Request&)> async_validator;
  const std::function<void(const Request&, api::ObjectDraft&)> mutator;
  const std::function<Awaitable<void>(const Request&, api::ObjectDraft&)> async_mutator;
  const std::string message = "the webhook at /a has no handler: it is empty";
  EXPECT_EQ(test::refusal([&] { server.validate<Website>("/a", validator); }), message);
  EXPECT_EQ(test::refusal([&] { server.validate<Website>("/a", async_validator); }), message);
  EXPECT_EQ(test::refusal([&] { server.mutate<Website>("/a", mutator); }), message);
  EXPECT_EQ(test::refusal([&] { server.mutate<Website>("/a", async_mutator); }), message);
}

TEST_F(WebhookTest, UnknownFieldsStay) {
  WebhookServer server(loop_, options());
  server.mutate<Website>([](const Admission<Website>&, api::ObjectDraft& draft) {
    draft["metadata"]["labels"]["app"].set("web");
  });
  const Serving serving(server);
  const Object answer = admit(
      server, "/mutate-example-com-v1-website",
      review("1", "CREATE",
             R"({"apiVersion":"example.com/v1","kind":"Website","future":{"a":[1.50,null]}})"));
  EXPECT_EQ(patch_in(answer),
            R"([{"value":{"labels":{"app":"web"}},"path":"/metadata","op":"add"}])");
}

TEST_F(WebhookTest, ADeletionIsNotMutated) {
  WebhookServer server(loop_, options());
  std::atomic<int> calls{0};
  server.mutate<Website>([&](const Admission<Website>&, api::ObjectDraft&) { ++calls; });
  const Serving serving(server);
  const Object answer =
      admit(server, "/mutate-example-com-v1-website", review("1", "DELETE", "null", website(1)));
  EXPECT_TRUE(is_allowed(answer));
  EXPECT_EQ(calls, 0);
}

TEST_F(WebhookTest, ADeniedMutationHasNoPatch) {
  WebhookServer server(loop_, options());
  server.mutate<Website>([](const Admission<Website>&, api::ObjectDraft& draft) {
    draft["spec"]["replicas"].set(7);
    return denied("no");
  });
  const Serving serving(server);
  const Object answer =
      admit(server, "/mutate-example-com-v1-website", review("1", "CREATE", website(1)));
  EXPECT_FALSE(is_allowed(answer));
  EXPECT_FALSE(answer["response"]["patch"].exists());
}

TEST_F(WebhookTest, AValidatorSeesTheOldObjectOfADeletion) {
  WebhookServer server(loop_, options());
  Validator<Website> validator;
  validator.remove = [](const Admission<Website>& request) {
    return request.object || request.old_object.replicas() != 4 ? allowed() : denied("in use");
  };
  server.validate<Website>(validator);
  const Serving serving(server);
  const std::string path = "/validate-example-com-v1-website";
  EXPECT_FALSE(is_allowed(admit(server, path, review("1", "DELETE", "null", website(4)))));
  EXPECT_TRUE(is_allowed(admit(server, path, review("2", "CREATE", website(4)))));
}

Awaitable<AdmissionResponse> slow_verdict(const Admission<Website>& request) {
  co_await Clock::real()->sleep(1ms, request.stop);
  AdmissionResponse out = request.object.replicas() == 1 ? allowed() : denied("not one");
  co_return out;
}

Awaitable<void> slow_edit(const Admission<Website>& request, api::ObjectDraft& draft) {
  co_await Clock::real()->sleep(1ms, request.stop);
  draft["spec"]["replicas"].set(9);
}

TEST_F(WebhookTest, HandlersMayBeCoroutines) {
  WebhookServer server(loop_, options());
  server.validate<Website>("/validate", &slow_verdict);
  server.mutate<Website>("/mutate", &slow_edit);
  server.validate<Website>("/throws",
                           [](const Admission<Website>&) -> Awaitable<AdmissionResponse> {
                             throw std::runtime_error("secret");
                             co_return allowed();
                           });
  const Serving serving(server);
  EXPECT_TRUE(is_allowed(admit(server, "/validate", review("1", "CREATE", website(1)))));
  EXPECT_FALSE(is_allowed(admit(server, "/validate", review("2", "CREATE", website(2)))));
  EXPECT_EQ(patch_in(admit(server, "/mutate", review("3", "CREATE", website(1)))),
            R"([{"value":9,"path":"/spec/replicas","op":"replace"}])");
  const Object thrown = admit(server, "/throws", review("4", "CREATE", website(1)));
  EXPECT_EQ(thrown["response"]["status"]["code"].as_int(), 500);
}

TEST_F(WebhookTest, AStatusErrorIsReturned) {
  WebhookServer server(loop_, options());
  server.validate<Website>([](const Admission<Website>& request) -> AdmissionResponse {
    throw api::StatusError::invalid("example.com", "Website", request.object.name(),
                                    {{"FieldValueInvalid", "too many", "spec.replicas"}});
  });
  const Serving serving(server);
  const Object answer =
      admit(server, "/validate-example-com-v1-website", review("1", "CREATE", website(1)));
  EXPECT_FALSE(is_allowed(answer));
  EXPECT_EQ(answer["response"]["status"]["code"].as_int(), 422);
  EXPECT_EQ(answer["response"]["status"]["reason"].as_string(), "Invalid");
  EXPECT_EQ(metric(server, "controller_runtime_webhook_panics_total"), 0);
}

TEST_F(WebhookTest, AnotherExceptionIs500WithoutItsText) {
  WebhookServer server(loop_, options());
  server.validate<Website>("/a", [](const Admission<Website>&) -> AdmissionResponse {
    throw std::runtime_error("secret");
  });
  server.validate<Website>("/b", [](const Admission<Website>&) -> AdmissionResponse { throw 1; });
  const Serving serving(server);
  for (const char* path : {"/a", "/b"}) {
    const Object answer = admit(server, path, review("uid-1", "CREATE", website(1)));
    EXPECT_EQ(answer["response"]["uid"].as_string(), "uid-1");
    EXPECT_FALSE(is_allowed(answer));
    EXPECT_EQ(answer["response"]["status"]["code"].as_int(), 500);
    EXPECT_THAT(answer.to_json(), Not(HasSubstr("secret")));
  }
  EXPECT_EQ(metric(server, "controller_runtime_webhook_panics_total"), 2);
}

TEST_F(WebhookTest, AnObjectOfAnotherKindIsRejected) {
  WebhookServer server(loop_, options());
  server.validate<Website>("/typed", [](const Admission<Website>&) { return allowed(); });
  server.validate<Object>("/any", [](const Admission<Object>& request) {
    return request.object.kind() == "Pod" ? allowed() : denied("no pod");
  });
  const Serving serving(server);
  const std::string pod = review("1", "CREATE", R"({"apiVersion":"v1","kind":"Pod"})");
  const Object answer = admit(server, "/typed", pod);
  EXPECT_FALSE(is_allowed(answer));
  EXPECT_EQ(answer["response"]["status"]["code"].as_int(), 400);
  EXPECT_EQ(answer["response"]["status"]["message"].as_string(),
            "this webhook is for example.com/v1 Website, not for v1 Pod");
  EXPECT_TRUE(is_allowed(admit(server, "/any", pod)));
}

TEST_F(WebhookTest, AValidatorIgnoresConnect) {
  WebhookServer server(loop_, options());
  server.validate<Website>([](const Admission<Website>&) { return denied("not called"); });
  server.validate<Object>("/any", [](const Admission<Object>& request) {
    return denied(std::string(request.object.kind()));
  });
  const Serving serving(server);
  const std::string path = "/validate-example-com-v1-website";
  const std::string exec =
      review("1", "CONNECT", R"({"apiVersion":"v1","kind":"PodExecOptions","container":"c"})");
  EXPECT_TRUE(is_allowed(admit(server, path, exec)));
  EXPECT_TRUE(is_allowed(admit(server, path, review("2", "CONNECT", "null"))));
  const Object any = admit(server, "/any", exec);
  EXPECT_EQ(any["response"]["status"]["message"].as_string(), "PodExecOptions");
}

TEST_F(WebhookTest, AnInvalidRequestIsAnHttpError) {
  WebhookServer server(loop_, options());
  allow_all(server);
  const Serving serving(server);
  const HttpsCaller call = caller(server);
  const std::string good = review("1", "CREATE", website(1));
  const auto message = [&](const HttpsRequest& request, int status) {
    const HttpsAnswer answer = call(request);
    EXPECT_EQ(answer.status, status) << answer.body;
    const Object said = answer.object();
    return std::string(said["message"].as_string());
  };
  EXPECT_EQ(message({.path = "/validate"}, 400), "request body is empty");
  EXPECT_THAT(message({.path = "/validate", .body = "{"}, 400), HasSubstr("cannot be decoded"));
  EXPECT_THAT(message({.path = "/validate", .body = good, .content_type = "application/yaml"}, 415),
              HasSubstr("not application/json"));
  EXPECT_THAT(message({.path = "/elsewhere", .body = good}, 404), HasSubstr("no webhook"));
  EXPECT_THAT(message({.path = "/validate", .method = "GET"}, 405), HasSubstr("POST"));
  EXPECT_EQ(
      call({.path = "/validate", .body = good, .content_type = "application/json; charset=utf-8"})
          .status,
      200);
  EXPECT_EQ(metric(server, "controller_runtime_webhook_requests_total",
                   {{"webhook", "/validate"}, {"code", "400"}}),
            2);
}

TEST_F(WebhookTest, HugeBodiesAreRejected) {
  WebhookServer server(loop_, options());
  allow_all(server);
  const Serving serving(server);
  const HttpsCaller call = caller(server);
  constexpr std::size_t kLimit = 7u << 20;
  const std::string huge(kLimit + 1, ' ');
  // Several times: the response must not be lost while the client still sends.
  for (const bool chunked : {false, true, false, true, false, true}) {
    const HttpsAnswer answer = call({.path = "/validate", .body = huge, .chunked = chunked});
    EXPECT_EQ(answer.status, 413) << chunked;
    EXPECT_THAT(answer.body, HasSubstr("limit is 7340032 bytes"));
  }
  std::string fits = review("1", "CREATE", website(1));
  fits.append(kLimit - fits.size(), ' ');
  EXPECT_EQ(call({.path = "/validate", .body = fits}).status, 200);
}

TEST_F(WebhookTest, BlockingHandlersRunConcurrently) {
  WebhookServer server(loop_, options());
  constexpr int kCalls = 8;
  std::latch all(kCalls);
  server.validate<Website>("/validate", [&](const Admission<Website>&) {
    test::arrive_and_wait(all);
    return allowed();
  });
  const Serving serving(server);
  std::vector<std::thread> callers;
  callers.reserve(kCalls);
  std::atomic<int> fine{0};
  for (int i = 0; i < kCalls; ++i) {
    callers.emplace_back([&, i] {
      const Object answer =
          admit(server, "/validate", review(std::to_string(i), "CREATE", website(i)));
      if (answer["response"]["uid"].as_string() == std::to_string(i)) ++fine;
    });
  }
  for (auto& each : callers) each.join();
  EXPECT_EQ(fine, kCalls);
}

TEST_F(WebhookTest, AWebhookCanBeAddedWhileItRuns) {
  WebhookServer server(loop_, options());
  const Serving serving(server);
  EXPECT_EQ(ask(server, "/late", review("1", "CREATE", website(1))).status, 404);
  server.validate<Website>("/late", [](const Admission<Website>&) { return allowed(); });
  EXPECT_TRUE(is_allowed(admit(server, "/late", review("1", "CREATE", website(1)))));
}

TEST_F(WebhookTest, APathIsUnique) {
  WebhookServer server(loop_, options());
  const auto handler = [](const Admission<Website>&) { return allowed(); };
  server.validate<Website>("/a", handler);
  EXPECT_THROW(server.validate<Website>("/a", handler), InvalidArgument);
  EXPECT_EQ(test::refusal<InvalidArgument>([&] { server.validate<Website>("/convert", handler); }),
            "/convert is the path of conversions: an admission webhook needs another one");
  for (const char* path : {"", "a", "/a b", "/a?b", "//a"})
    EXPECT_THROW(server.validate<Website>(path, handler), InvalidArgument) << path;
}

TEST_F(WebhookTest, TheStartedCheckReportsWhetherItServes) {
  WebhookServer server(loop_, options());
  const HealthCheck check = server.started_checker();
  EXPECT_EQ(check(), "webhook server has not been started yet");
  {
    const Serving serving(server);
    EXPECT_TRUE(test::eventually([&] { return !check(); }));
  }
  EXPECT_EQ(check(), "webhook server has not been started yet");
}

TEST_F(WebhookTest, ItsHostMayBeAName) {
  WebhookOptions named = options();
  named.host = "localhost";
  WebhookServer server(loop_, named);
  const HealthCheck check = server.started_checker();
  const Serving serving(server);
  EXPECT_TRUE(test::eventually([&] { return !check(); }));
}

// ---------------------------------------------------------------------------------- the end

TEST_F(WebhookTest, ServesUntilItsEndpointIsRemoved) {
  WebhookOptions slow = options();
  slow.drain_delay = 1s;
  WebhookServer server(loop_, slow);
  allow_all(server);
  Serving serving(server);
  const HttpsCaller call = caller(server);
  const HttpsRequest request{.path = "/validate", .body = review("1", "CREATE", website(1))};
  EXPECT_EQ(call(request).status, 200);
  const auto began = std::chrono::steady_clock::now();
  serving.request_stop();
  if (call(request).status != 200) {
    EXPECT_GT(std::chrono::steady_clock::now() - began, 1s) << "it has stopped at once";
  }
  serving.stop();
  EXPECT_GE(std::chrono::steady_clock::now() - began, 1s);
  EXPECT_EQ(call(request).status, 0);
}

TEST_F(WebhookTest, ARunningRequestIsAnsweredDuringTheShutdown) {
  WebhookServer server(loop_, options());
  test::HoldUp hold;
  server.validate<Website>("/slow", [&](const Admission<Website>& request) {
    hold.pass();
    EXPECT_FALSE(request.stop.stop_requested());
    return allowed();
  });
  server.validate<Website>("/quick", [](const Admission<Website>&) { return allowed(); });
  Serving serving(server);
  auto answer = std::async(std::launch::async,
                           [&] { return ask(server, "/slow", review("1", "CREATE", website(1))); });
  EXPECT_TRUE(hold.reached());
  serving.request_stop();
  // New requests are rejected after a moment. Until the server has noticed its stop, it answers
  // them.
  EXPECT_TRUE(test::eventually(
      [&] { return ask(server, "/quick", review("2", "CREATE", website(1))).status == 0; }));
  EXPECT_FALSE(serving.ended());
  hold.release();
  EXPECT_EQ(test::get(answer).status, 200);
  serving.stop();
}

Awaitable<AdmissionResponse> until_stopped(const Admission<Website>& request) {
  co_await Clock::real()->sleep(1h, request.stop);
  co_return allowed();
}

TEST_F(WebhookTest, ASlowRequestIsStopped) {
  WebhookOptions impatient = options();
  impatient.finish_timeout = 50ms;
  WebhookServer server(loop_, impatient);
  test::Gate entered;
  server.validate<Website>("/coroutine", &until_stopped);
  server.validate<Website>("/function", [&](const Admission<Website>& request) {
    entered.open();
    EXPECT_TRUE(test::eventually([&] { return request.stop.stop_requested(); }));
    return allowed();
  });
  Serving serving(server);
  const auto call = [&](const char* path) {
    return std::async(std::launch::async, [this, &server, path] {
      return ask(server, path, review("1", "CREATE", website(1)));
    });
  };
  auto function = call("/function");
  EXPECT_TRUE(entered.wait());
  auto coroutine = call("/coroutine");
  EXPECT_TRUE(test::eventually([&] {
    return metric(server, "controller_runtime_webhook_requests_in_flight",
                  {{"webhook", "/coroutine"}}) == 1;
  }));
  serving.stop();
  EXPECT_EQ(test::get(function).status, 200);
  EXPECT_EQ(test::get(coroutine).status, 200);
}

/// It must not look like a denial: the API server applies the failurePolicy.
TEST_F(WebhookTest, ARequestThatComesTooLateIsNotAnAnswer) {
  WebhookOptions impatient = options();
  impatient.plain_http = true;
  impatient.finish_timeout = 50ms;
  WebhookServer server(loop_, impatient);
  test::Gate entered;
  test::Gate stopping;
  test::Gate leave;
  server.validate<Website>("/slow", [&](const Admission<Website>& request) {
    entered.open();
    EXPECT_TRUE(test::eventually([&] { return request.stop.stop_requested(); }));
    stopping.open();
    EXPECT_TRUE(leave.wait());
    return allowed();
  });
  Serving serving(server);
  const std::string body = review("1", "CREATE", website(1));
  const HttpsCaller call(server.port(), {});
  auto slow = std::async(std::launch::async, [&] { return call({.path = "/slow", .body = body}); });
  EXPECT_TRUE(entered.wait());
  boost::asio::io_context context;
  boost::asio::ip::tcp::socket socket(context);
  socket.connect({boost::asio::ip::make_address("127.0.0.1"), server.port()});
  const std::string head = fmt::format(
      "POST /slow HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
      "Expect: 100-continue\r\nContent-Length: {}\r\n\r\n",
      body.size());
  boost::asio::write(socket, boost::asio::buffer(head));
  std::string answer;
  boost::asio::read_until(socket, boost::asio::dynamic_buffer(answer), "\r\n\r\n");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 100 ")) << answer;
  serving.request_stop();
  EXPECT_TRUE(stopping.wait());
  boost::asio::write(socket, boost::asio::buffer(body));
  answer.clear();
  boost::system::error_code end;
  boost::asio::read(socket, boost::asio::dynamic_buffer(answer), end);
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 503 ")) << answer;
  leave.open();
  EXPECT_EQ(test::get(slow).status, 200);
  serving.end();
}

TEST_F(WebhookTest, ReplacesItsCertificateAndStopsWhileAllThreadsAreBlocked) {
  WebhookOptions two_threads = options();
  two_threads.max_threads = 2;
  two_threads.finish_timeout = 50ms;
  WebhookServer server(loop_, two_threads);
  std::atomic<int> blocked{0};
  server.validate<Website>("/function", [&](const Admission<Website>& request) {
    ++blocked;
    EXPECT_TRUE(test::eventually([&] { return request.stop.stop_requested(); }));
    return allowed();
  });
  Serving serving(server);
  const auto call = [&] {
    return std::async(std::launch::async, [this, &server] {
      return ask(server, "/function", review("1", "CREATE", website(1)));
    });
  };
  auto first = call();
  auto second = call();
  EXPECT_TRUE(test::eventually([&] { return blocked == 2; }));
  const auto reads = [&] { return metric(server, "certwatcher_read_certificate_total"); };
  const double before = reads();
  write(authority_->issue_local());
  EXPECT_TRUE(test::eventually([&] { return reads() > before; }));
  serving.stop();
  EXPECT_EQ(test::get(first).status, 200);
  EXPECT_EQ(test::get(second).status, 200);
}

TEST_F(WebhookTest, TheApiServersTimeoutStopsTheHandler) {
  WebhookServer server(loop_, options());
  server.validate<Website>("/validate", &until_stopped);
  const Serving serving(server);
  EXPECT_TRUE(is_allowed(admit(server, "/validate?timeout=1s", review("1", "CREATE", website(1)))));
}

TEST_F(WebhookTest, ADisconnectStopsTheHandler) {
  WebhookOptions plain = options();
  plain.plain_http = true;
  WebhookServer server(loop_, plain);
  test::Gate entered;
  test::Gate stopped;
  server.validate<Website>("/validate", [&](const Admission<Website>& request) {
    entered.open();
    if (test::eventually([&] { return request.stop.stop_requested(); })) stopped.open();
    return allowed();
  });
  const Serving serving(server);
  boost::asio::io_context context;
  boost::asio::ip::tcp::socket socket(context);
  socket.connect({boost::asio::ip::make_address("127.0.0.1"), server.port()});
  const std::string body = review("1", "CREATE", website(1));
  const std::string request = fmt::format(
      "POST /validate HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
      "Content-Length: {}\r\n\r\n{}",
      body.size(), body);
  boost::asio::write(socket, boost::asio::buffer(request));
  ASSERT_TRUE(entered.wait());
  socket.close();
  EXPECT_TRUE(stopped.wait());
}

TEST_F(WebhookTest, ASilentClientDoesNotDelayTheStop) {
  WebhookOptions patient = options();
  patient.finish_timeout = 1h;
  WebhookServer server(loop_, patient);
  allow_all(server);
  Serving serving(server);
  boost::asio::io_context context;
  boost::asio::ip::tcp::socket silent(context);
  silent.connect({boost::asio::ip::make_address("127.0.0.1"), server.port()});
  // This connection is accepted after the silent one.
  EXPECT_EQ(ask(server, "/validate", review("1", "CREATE", website(1))).status, 200);
  serving.stop();
}

TEST_F(WebhookTest, AsioCancellationEndsARunLikeAStop) {
  WebhookServer server(loop_, options());
  test::HoldUp hold;
  server.validate<Website>("/validate", [&](const Admission<Website>&) {
    hold.pass();
    return allowed();
  });
  boost::asio::cancellation_signal cancel;
  std::promise<void> ended;
  const auto strand = boost::asio::make_strand(loop_->context());
  boost::asio::co_spawn(
      strand, server.async_run(std::stop_token()),
      boost::asio::bind_cancellation_slot(cancel.slot(), [&](const std::exception_ptr& error) {
        EXPECT_FALSE(error);
        EXPECT_TRUE(hold.is_released());
        ended.set_value();
      }));
  auto answer = std::async(std::launch::async, [&] {
    return ask(server, "/validate", review("1", "CREATE", website(1)));
  });
  EXPECT_TRUE(hold.reached());
  boost::asio::post(strand, [&] { cancel.emit(boost::asio::cancellation_type::terminal); });
  // New requests are rejected; the running one is not aborted.
  EXPECT_TRUE(test::eventually([&] { return server.started_checker()().has_value(); }));
  hold.release();
  EXPECT_EQ(test::get(answer).status, 200);
  test::wait_for(ended.get_future());
}

TEST_F(WebhookTest, ItsDestructorEndsARunOnAnotherThread) {
  std::future<void> run;
  std::uint16_t port = 0;
  {
    WebhookServer server(loop_, options());
    port = server.port();
    run = std::async(std::launch::async, [&server] { server.run({}); });
    EXPECT_TRUE(test::eventually([check = server.started_checker()] { return !check(); }));
  }
  EXPECT_EQ(HttpsCaller(port, authority_->certificate())({.path = "/"}).status, 0);
  EXPECT_NO_THROW(test::get(std::move(run)));
}

TEST_F(WebhookTest, AFrozenClientDoesNotBlockOthers) {
  WebhookOptions plain = options();
  plain.plain_http = true;
  plain.finish_timeout = 50ms;
  WebhookServer server(loop_, plain);
  allow_all(server);
  Serving serving(server);
  boost::asio::io_context context;
  std::vector<boost::asio::ip::tcp::socket> frozen;
  constexpr int kClients = 10;
  frozen.reserve(kClients);
  for (int i = 0; i < kClients; ++i) {
    auto& socket = frozen.emplace_back(context);
    socket.connect({boost::asio::ip::make_address("127.0.0.1"), server.port()});
    const std::string half =
        "POST /validate HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"
        "Content-Length: 100\r\n\r\n{";
    boost::asio::write(socket, boost::asio::buffer(half));
  }
  const HttpsCaller call(server.port(), {});
  EXPECT_EQ(call({.path = "/validate", .body = review("1", "CREATE", website(1))}).status, 200);
  const auto began = std::chrono::steady_clock::now();
  serving.stop();
  EXPECT_LT(std::chrono::steady_clock::now() - began, 20s);
}

// ---------------------------------------------------------------------------------- a manager

rest::Config unreachable() {
  rest::Config out;
  out.server = "http://127.0.0.1:1";
  return out;
}

TEST_F(WebhookTest, ServesUntilLeaderRunnablesHaveEnded) {
  const rest::Client client(unreachable(), loop_);
  ManagerOptions manager_options;
  manager_options.health_listen = "127.0.0.1:0";
  Manager manager(client, manager_options);
  WebhookServer server(manager, options());
  manager.add_ready_check("webhook", server.started_checker());
  allow_all(server);
  test::Gate working;
  std::atomic<long> last{0};
  manager.add("work", [&](std::stop_token stop) {
    working.open();
    EXPECT_TRUE(test::eventually([&] { return stop.stop_requested(); }));
    last = ask(server, "/validate", review("1", "CREATE", website(1))).status;
  });
  std::stop_source stop;
  auto ended =
      std::async(std::launch::async, [&, token = stop.get_token()] { manager.run(token); });
  EXPECT_TRUE(working.wait());
  EXPECT_EQ(
      HttpsCaller(manager.health_port(), {})({.path = "/readyz/webhook", .method = "GET"}).status,
      200);
  std::vector<metrics::Sample> samples;
  manager.collect(samples);
  EXPECT_THAT(samples, Contains(testing::Field(&metrics::Sample::name,
                                               "controller_runtime_webhook_requests_total")));
  stop.request_stop();
  test::get(ended);
  EXPECT_EQ(last, 200);
  EXPECT_EQ(ask(server, "/validate", review("1", "CREATE", website(1))).status, 0);
}

TEST_F(WebhookTest, ItsStopIsPartOfTheManagersStop) {
  const rest::Client client(unreachable(), loop_);
  ManagerOptions manager_options;
  manager_options.graceful_shutdown_timeout = 6s;
  Manager manager(client, manager_options);
  WebhookOptions slow = options();
  slow.drain_delay = 1h;
  slow.finish_timeout = 1h;
  WebhookServer server(manager, slow);
  test::Gate entered;
  server.validate<Website>("/validate", [&](const Admission<Website>& request) {
    entered.open();
    EXPECT_TRUE(test::eventually([&] { return request.stop.stop_requested(); }));
    return allowed();
  });
  std::stop_source stop;
  auto ended =
      std::async(std::launch::async, [&, token = stop.get_token()] { manager.run(token); });
  auto answer = std::async(std::launch::async, [&] {
    return ask(server, "/validate", review("1", "CREATE", website(1)));
  });
  EXPECT_TRUE(entered.wait());
  stop.request_stop();
  EXPECT_EQ(test::get(answer).status, 200);
  EXPECT_NO_THROW(test::get(ended)) << "the shutdown takes too long";
}

}  // namespace
}  // namespace lookout::controller
