// The server and its webhooks, for tests of admission.
#pragma once

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <utility>

#include "tests/apiserver/client_fixture.h"
#include "tests/apiserver/test_webhook.h"
#include "tests/support/held.h"
#include "tests/support/matchers.h"

namespace lookout::apiserver {

inline const api::Resource kMutating{"admissionregistration.k8s.io", "v1",
                                     "MutatingWebhookConfiguration",
                                     "mutatingwebhookconfigurations", false};
inline const api::Resource kValidating{"admissionregistration.k8s.io", "v1",
                                       "ValidatingWebhookConfiguration",
                                       "validatingwebhookconfigurations", false};

inline const std::string kMaps = rule("", "v1", "configmaps");

inline std::string denied(const api::Object& review, const std::string& message) {
  return review_answer(
      review, fmt::format(R"("allowed":false,"status":{{"message":"{}","code":403}})", message));
}

/// A response that adds an item to the data of a config map.
inline TestWebhook::Answer adds(const std::string& key, const std::string& value = "yes") {
  return [=](const api::Object& review) {
    return patched(review,
                   fmt::format(R"([{{"op":"add","path":"/data/{}","value":"{}"}}])", key, value));
  };
}

/// "apps/v1/deployments": a kind or a resource in a review.
inline std::string full_name(api::Value value) {
  const api::Value last = value["kind"].exists() ? value["kind"] : value["resource"];
  return fmt::format("{}/{}/{}", value["group"].as_string(), value["version"].as_string(),
                     last.as_string());
}

/// "autoscaling/v1/Scale of apps/v1/deployments/scale": the object and the resource of a review.
inline std::string reviewed(api::Value request) {
  const std::string_view subresource = request["subResource"].as_string();
  return fmt::format("{} of {}{}{}", full_name(request["kind"]), full_name(request["resource"]),
                     subresource.empty() ? "" : "/", subresource);
}

class AdmissionTest : public ClientTest {
 protected:
  using ClientTest::ClientTest;

  /// Registers a webhook; several with the same name are in one configuration.
  void validate_with(const TestWebhook& hook, const std::string& what = kMaps,
                     const std::string& more = "") const {
    all(kValidating)
        .create(configuration("validating",
                              webhook("check.example.com", hook.client_config(), what, more)));
  }
  void mutate_with(const TestWebhook& hook, const std::string& what = kMaps,
                   const std::string& more = "") const {
    all(kMutating).create(
        configuration("mutating", webhook("change.example.com", hook.client_config(), what, more)));
  }
  rest::ResourceClient maps(std::string ns = "default") const {
    return in(kConfigMaps, std::move(ns));
  }
  /// The answer to a creation that is refused.
  api::Status refused_write() const {
    return status_of([&] { maps().create(config_map("a")); });
  }
  template <class Matcher>
  void expect_refusal(int code, const Matcher& message) const {
    const api::Status status = refused_write();
    EXPECT_EQ(status.code, code);
    EXPECT_THAT(status.message, message);
  }
  std::string item(const std::string& name, const std::string& key) const {
    return std::string(lookout::test::held(maps().get(name))["data"][key].as_string());
  }
};

}  // namespace lookout::apiserver
