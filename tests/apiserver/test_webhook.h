// An HTTPS webhook whose responses a test sets.
#pragma once

#include <atomic>
#include <boost/asio/thread_pool.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "lookout/api/object.h"
#include "lookout/base/http/server.h"
#include "lookout/base/pinned.h"
#include "tests/rest/certificates.h"
#include "tests/support/files.h"

namespace lookout::apiserver {

/// The AdmissionReview for a request, with `members` and the uid in its response.
std::string review_answer(const api::Object& review, const std::string& members);
inline std::string allowed(const api::Object& review) {
  return review_answer(review, R"("allowed":true)");
}
/// A response with a JSON patch.
std::string patched(const api::Object& review, const std::string& operations);

class TestWebhook : public base::Pinned {
 public:
  /// Returns the body of the response; nullopt: no response. Runs on separate threads, and may block.
  using Answer = std::function<std::optional<std::string>(const api::Object& review)>;

  /// `names` are the names in its certificate: "DNS:hook.shop.svc".
  explicit TestWebhook(Answer answer, std::vector<std::string> names = {"IP:127.0.0.1"});
  ~TestWebhook();

  std::uint16_t port() const { return server_->port(); }
  std::string url(const std::string& path = "/hook") const;
  /// For clientConfig.caBundle.
  std::string ca_bundle() const;
  /// The members of clientConfig.
  std::string client_config() const;
  /// All received reviews, and the target of the latest request.
  std::vector<api::Object> reviews() const;
  std::string latest_target() const;
  /// The status of answers to GET requests, which are no reviews.
  void answer_get_with(int status) { found_ = status; }

 private:
  Awaitable<http::Response> handle(http::Request request);
  Awaitable<std::optional<std::string>> answer_to(api::Object review) const;

  const Answer answer_;
  test::TempDir dir_;
  const test::CertificateAuthority authority_;
  mutable std::mutex mutex_;
  std::vector<api::Object> reviews_;  // guarded by mutex_
  std::string target_;                // guarded by mutex_
  std::atomic<int> found_{200};
  boost::asio::thread_pool pool_{4};
  std::unique_ptr<http::Server> server_;
};

/// An entry of `webhooks`: its name, client config, rule, and other members.
std::string webhook(const std::string& name, const std::string& client_config,
                    const std::string& rule, const std::string& more = "");
/// A rule for all operations on some resources.
std::string rule(const std::string& group, const std::string& version, const std::string& resource,
                 const std::string& operations = R"("*")");
/// A configuration of some webhooks.
api::Object configuration(const std::string& name, const std::string& webhooks);

}  // namespace lookout::apiserver
