// The metrics of admission webhooks.
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>
#include <string>
#include <vector>

#include "tests/apiserver/admission_fixture.h"
#include "tests/apiserver/http_client.h"

namespace lookout::apiserver {
namespace {

class AdmissionMetricsTest : public AdmissionTest {
 protected:
  /// The value of the sample that has all these labels, on /metrics; -1 if there is none.
  double metric(const std::string& name, const std::vector<std::string>& labels) const {
    std::istringstream lines(http(server_.port(), "GET", "/metrics").body);
    for (std::string line; std::getline(lines, line);) {
      if (!line.starts_with("apiserver_admission_webhook_" + name + "{")) continue;
      const auto is_in = [&](const std::string& label) {
        return line.find(label) != std::string::npos;
      };
      if (std::all_of(labels.begin(), labels.end(), is_in))
        return std::stod(line.substr(line.rfind(' ')));
    }
    return -1;
  }

  static inline const std::vector<std::string> kCheck = {R"(name="check.example.com")",
                                                         R"(type="validating")"};
  static inline const std::vector<std::string> kChange = {R"(name="change.example.com")",
                                                          R"(type="admit")"};
  static std::vector<std::string> with(std::vector<std::string> labels,
                                       const std::vector<std::string>& more) {
    labels.insert(labels.end(), more.begin(), more.end());
    return labels;
  }
};

TEST_F(AdmissionMetricsTest, CallsAreCountedByOutcomeAndOperation) {
  const TestWebhook check([](const auto& review) {
    return review["request"]["operation"].as_string() == "DELETE" ? denied(review, "it stays")
                                                                  : allowed(review);
  });
  const TestWebhook change([](const auto& review) { return allowed(review); });
  validate_with(check);
  mutate_with(change);
  maps().create(config_map("a"));
  maps().create(config_map("b"));
  EXPECT_EQ(status_of([&] { maps().remove("a"); }).code, 403);

  EXPECT_EQ(metric("request_total",
                   with(kCheck, {R"(operation="CREATE")", R"(code="200")", R"(rejected="false")"})),
            2);
  EXPECT_EQ(metric("request_total",
                   with(kCheck, {R"(operation="DELETE")", R"(code="403")", R"(rejected="true")"})),
            1);
  EXPECT_EQ(metric("request_total", with(kChange, {R"(operation="DELETE")", R"(code="200")",
                                                   R"(rejected="false")"})),
            1);
  EXPECT_EQ(
      metric("rejection_count", with(kCheck, {R"(operation="DELETE")", R"(error_type="no_error")",
                                              R"(rejection_code="403")"})),
      1);
  EXPECT_EQ(metric("rejection_count", kChange), -1);
  EXPECT_EQ(metric("admission_duration_seconds_count",
                   with(kCheck, {R"(operation="CREATE")", R"(rejected="false")"})),
            2);
  EXPECT_EQ(metric("admission_duration_seconds_bucket",
                   with(kCheck, {R"(operation="CREATE")", R"(le="+Inf")"})),
            2);
  EXPECT_GT(metric("admission_duration_seconds_sum", with(kCheck, {R"(operation="CREATE")"})), 0);
  const std::string page = http(server_.port(), "GET", "/metrics").body;
  EXPECT_NE(page.find("# HELP apiserver_admission_webhook_rejection_count Number of requests that"),
            std::string::npos);
}

TEST_F(AdmissionMetricsTest, ARejectionWithAnInvalidCodeCountsAs600) {
  const TestWebhook check([](const auto& review) {
    return review_answer(review, R"("allowed":false,"status":{"code":999})");
  });
  validate_with(check);
  EXPECT_THROW(maps().create(config_map("a")), api::StatusError);
  EXPECT_EQ(metric("rejection_count", with(kCheck, {R"(rejection_code="600")"})), 1);
  EXPECT_EQ(metric("request_total", with(kCheck, {R"(code="600")"})), 1);
}

TEST_F(AdmissionMetricsTest, ARejectionWithACodeOutsideHttpIs400) {
  const TestWebhook check([](const auto& review) {
    return review_answer(review, R"("allowed":false,"status":{"code":31337})");
  });
  validate_with(check);
  EXPECT_EQ(refused_write().code, 400);
}

TEST_F(AdmissionMetricsTest, FailuresRejectOrAreIgnored) {
  // Neither responds: their ports are closed.
  std::string gone;
  {
    const TestWebhook hook([](const auto& review) { return allowed(review); });
    gone = hook.client_config();
  }
  all(kValidating)
      .create(configuration(
          "ignored", webhook("check.example.com", gone, kMaps, R"("failurePolicy":"Ignore")")));
  maps().create(config_map("a"));
  EXPECT_EQ(metric("fail_open_count", kCheck), 1);
  EXPECT_EQ(metric("request_total", with(kCheck, {R"(code="400")", R"(rejected="false")"})), 1);
  EXPECT_EQ(metric("rejection_count", kCheck), -1);

  all(kMutating).create(configuration("needed", webhook("change.example.com", gone, kMaps)));
  EXPECT_EQ(status_of([&] { maps().create(config_map("b")); }).code, 500);
  EXPECT_EQ(metric("fail_open_count", kChange), -1);
  EXPECT_EQ(metric("request_total", with(kChange, {R"(code="503")", R"(rejected="true")"})), 1);
  EXPECT_EQ(metric("rejection_count", with(kChange, {R"(error_type="calling_webhook_error")",
                                                     R"(rejection_code="503")"})),
            1);
}

TEST_F(AdmissionMetricsTest, APatchThatDoesNotFitIsAnErrorOfTheServer) {
  const TestWebhook change([](const auto& review) {
    return patched(review, R"([{"op":"remove","path":"/data/nothing"}])");
  });
  mutate_with(change);
  EXPECT_EQ(refused_write().code, 500);
  EXPECT_EQ(metric("rejection_count", with(kChange, {R"(error_type="apiserver_internal_error")",
                                                     R"(rejection_code="0")"})),
            1);
  EXPECT_EQ(metric("request_total", with(kChange, {R"(code="0")", R"(rejected="true")"})), 1);
}

}  // namespace
}  // namespace lookout::apiserver
