#include "tests/apiserver/test_webhook.h"

#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <chrono>
#include <utility>

#include "lookout/base/async_event.h"
#include "lookout/base/base64.h"

namespace lookout::apiserver {

std::string review_answer(const api::Object& review, const std::string& members) {
  return fmt::format(
      R"({{"kind":"AdmissionReview","apiVersion":"{}","response":{{"uid":"{}",{}}}}})",
      review.api_version(), review["request"]["uid"].as_string(), members);
}

std::string patched(const api::Object& review, const std::string& operations) {
  return review_answer(review, fmt::format(R"("allowed":true,"patchType":"JSONPatch","patch":"{}")",
                                           encode_base64(operations)));
}

TestWebhook::TestWebhook(Answer answer, std::vector<std::string> names)
    : answer_(std::move(answer)) {
  test::CertificateOptions certificate;
  certificate.names = std::move(names);
  const test::KeyPair pair = authority_.issue(certificate);
  test::write_file(dir_ / "tls.crt", pair.certificate);
  test::write_file(dir_ / "tls.key", pair.key);
  http::ServerOptions options;
  options.tls =
      http::make_tls_context((dir_ / "tls.crt").string(), (dir_ / "tls.key").string(), "");
  server_ = std::make_unique<http::Server>(
      std::move(options), [this](http::Request request) { return handle(std::move(request)); },
      [](int status, const std::string& message) { return http::Response::text(status, message); });
  server_->start();
}

TestWebhook::~TestWebhook() {
  // Requests end first, then the pool's tasks, then the threads to which they return.
  server_->drain(std::chrono::milliseconds(0));
  server_->cut_off();
  pool_.join();
  server_->stop(std::chrono::milliseconds(0));
}

Awaitable<std::optional<std::string>> TestWebhook::answer_to(api::Object review) const {
  co_return answer_(review);
}

Awaitable<http::Response> TestWebhook::handle(http::Request request) {
  if (request.method == "GET") {
    const std::lock_guard lock(mutex_);
    target_ = request.target;
    http::Response found;
    found.status = found_.load();
    found.body = "{}";
    co_return found;
  }
  const api::Object review = api::Object::parse(request.body);
  {
    const std::lock_guard lock(mutex_);
    reviews_.push_back(review);
    target_ = request.target;
  }
  const std::optional<std::string> body =
      co_await boost::asio::co_spawn(pool_, answer_to(review), boost::asio::use_awaitable);
  if (!body) {
    // Until the client times out, or the webhook ends.
    AsyncEvent bell(co_await boost::asio::this_coro::executor);
    const std::stop_callback wake(request.gone, [bell] { bell.ring(); });
    const auto until = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (!request.gone.stop_requested() && std::chrono::steady_clock::now() < until)
      co_await bell.wait(until);
  }
  http::Response response;
  response.body = body.value_or("");
  co_return response;
}

std::string TestWebhook::url(const std::string& path) const {
  return fmt::format("https://127.0.0.1:{}{}", port(), path);
}

std::string TestWebhook::ca_bundle() const { return encode_base64(authority_.certificate()); }

std::string TestWebhook::client_config() const {
  return fmt::format(R"("url":"{}","caBundle":"{}")", url(), ca_bundle());
}

std::vector<api::Object> TestWebhook::reviews() const {
  const std::lock_guard lock(mutex_);
  return reviews_;
}

std::string TestWebhook::latest_target() const {
  const std::lock_guard lock(mutex_);
  return target_;
}

std::string webhook(const std::string& name, const std::string& client_config,
                    const std::string& rule, const std::string& more) {
  return fmt::format(R"({{"name":"{}","clientConfig":{{{}}},"rules":[{}],"sideEffects":"None",)"
                     R"("admissionReviewVersions":["v1"]{}{}}})",
                     name, client_config, rule, more.empty() ? "" : ",", more);
}

std::string rule(const std::string& group, const std::string& version, const std::string& resource,
                 const std::string& operations) {
  return fmt::format(
      R"({{"apiGroups":["{}"],"apiVersions":["{}"],"resources":["{}"],"operations":[{}]}})", group,
      version, resource, operations);
}

api::Object configuration(const std::string& name, const std::string& webhooks) {
  return api::Object::parse(
      fmt::format(R"({{"metadata":{{"name":"{}"}},"webhooks":[{}]}})", name, webhooks));
}

}  // namespace lookout::apiserver
