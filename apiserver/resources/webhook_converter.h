// WebhookConverter: converts custom resources between versions with the webhook of their
// definition.
#pragma once

#include <cstddef>
#include <memory>
#include <stop_token>
#include <string>
#include <vector>

#include "apiserver/resources/version_schemas.h"
#include "apiserver/webhooks/webhook_client.h"
#include "lookout/api/object.h"
#include "lookout/base/event_loop.h"

namespace lookout::apiserver::resources {

/// Calls the conversion webhook of a definition
/// (k8s.io/apiextensions-apiserver/pkg/apiserver/conversion). Thread-safe; it must not outlive the
/// client.
class WebhookConverter {
 public:
  /// `spec` is that of the definition, whose conversion has the strategy Webhook.
  WebhookConverter(webhooks::WebhookClient& client, api::Value spec,
                   std::shared_ptr<const VersionSchemas> schemas);

  /// Converts the objects to a version, in the same order. Objects of this version and empty objects are
  /// unchanged; the others are sent in one review, or in several if they are very large, and pruned
  /// with the version's schema. Throws api::StatusError (500) on any failure.
  Awaitable<std::vector<api::Object>> convert(std::vector<api::Object> objects,
                                              std::string api_version,
                                              std::stop_token gone = {}) const;
  Awaitable<api::Object> convert(api::Object object, std::string api_version,
                                 std::stop_token gone = {}) const;
  /// The same for stored objects, which need VersionSchemas::read().
  Awaitable<std::vector<api::Object>> show(std::vector<api::Object> stored, std::string api_version,
                                           std::stop_token gone = {}) const;
  Awaitable<api::Object> show(api::Object stored, std::string api_version) const;

 private:
  /// The indexes of the objects of a review.
  using Places = std::vector<std::size_t>;

  std::string make_review(const std::vector<api::Object>& objects, const Places& places,
                          const std::string& uid, const std::string& api_version) const;
  void read_answer(const std::string& body, const std::string& uid, const std::string& api_version,
                   const Places& places, std::vector<api::Object>& objects) const;

  webhooks::WebhookClient& client_;
  const webhooks::Address address_;
  const std::shared_ptr<const VersionSchemas> schemas_;
  /// The version of ConversionReview; empty if the webhook and the server have none in common.
  std::string review_version_;
};

}  // namespace lookout::apiserver::resources
