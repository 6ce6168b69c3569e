// Conversion between versions, by ConversionReviews over plain HTTP.
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>
#include <string_view>

#include "tests/controller/webhook_testing.h"
#include "tests/support/matchers.h"
#include "tests/support/thrown.h"

namespace lookout::controller {
namespace {

using api::Object;

constexpr std::array<std::string_view, 4> kVersions = {"v1", "v2", "v3", "v4"};

template <std::size_t number>
struct Job : api::TypedObject {
  using TypedObject::TypedObject;
  static constexpr api::ResourceType kResource{"jobs.example.com", kVersions[number - 1],
                                               "ExternalJob", "externaljobs", true};
};
using JobV1 = Job<1>;
using JobV2 = Job<2>;
using JobV3 = Job<3>;  // the hub
using JobV4 = Job<4>;

std::string job(const std::string& version, const std::string& field, const std::string& value) {
  return fmt::format(
      R"({{"apiVersion":"jobs.example.com/{}","kind":"ExternalJob","metadata":{{"name":"job-1",)"
      R"("namespace":"shop","uid":"u1"}},"spec":{{"{}":"{}"}}}})",
      version, field, value);
}

std::string conversion(const std::string& desired, const std::string& objects) {
  return fmt::format(R"({{"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview",)"
                     R"("request":{{"uid":"c1","desiredAPIVersion":"{}","objects":[{}]}}}})",
                     desired, objects);
}

class ConversionTest : public WebhookFixture {
 protected:
  ConversionTest() : server_(loop_, plain()) {
    server_.convert<JobV3, JobV1>(
        [](const JobV1& from, api::ObjectDraft& to) {
          const auto at = from["spec"]["runAt"].as_string();
          if (at == "content of the object") throw std::runtime_error("content of the object");
          if (at == "bad") throw Error("spec.runAt is no time");
          if (at == "renamed") to["metadata"]["name"].set("other");
          to["spec"]["deferredAt"].set(at);
        },
        moving("deferredAt", "runAt"));
    server_.convert<JobV3, JobV2>(moving("scheduleAt", "deferredAt"),
                                  moving("deferredAt", "scheduleAt"));
  }

  WebhookOptions plain() const {
    WebhookOptions out = options();
    out.plain_http = true;
    return out;
  }

  HttpsAnswer ask(const std::string& body) const {
    return HttpsCaller(server_.port(), {})({.path = "/convert", .body = body});
  }

  /// The response to a valid review.
  Object convert(const std::string& desired, const std::string& objects) const {
    const HttpsAnswer answer = ask(conversion(desired, objects));
    EXPECT_EQ(answer.status, 200) << answer.body;
    const Object review = answer.object();
    EXPECT_EQ(review.api_version(), "apiextensions.k8s.io/v1");
    EXPECT_EQ(review.kind(), "ConversionReview");
    EXPECT_EQ(review["response"]["uid"].as_string(), "c1");
    EXPECT_FALSE(review["request"].exists());
    return review;
  }

  /// The message of a failed conversion.
  std::string failure(const std::string& desired, const std::string& objects) const {
    const Object review = convert(desired, objects);
    EXPECT_EQ(review["response"]["result"]["status"].as_string(), "Failure");
    EXPECT_EQ(review["response"]["convertedObjects"].size(), 0u);
    return std::string(review["response"]["result"]["message"].as_string());
  }

  WebhookServer server_;
  Serving serving_{server_};
};

TEST_F(ConversionTest, ASpokeBecomesTheHub) {
  const Object review = convert("jobs.example.com/v3", job("v1", "runAt", "noon"));
  EXPECT_EQ(review["response"]["result"]["status"].as_string(), "Success");
  EXPECT_EQ(review["response"]["convertedObjects"][0].to_json(),
            Object::parse(job("v3", "deferredAt", "noon")).to_json());
}

TEST_F(ConversionTest, TheHubBecomesASpoke) {
  const Object review = convert("jobs.example.com/v1", job("v3", "deferredAt", "noon"));
  EXPECT_EQ(review["response"]["convertedObjects"][0].to_json(),
            Object::parse(job("v1", "runAt", "noon")).to_json());
}

TEST_F(ConversionTest, ASpokeBecomesAnotherThroughTheHub) {
  const Object review = convert("jobs.example.com/v2", job("v1", "runAt", "noon"));
  EXPECT_EQ(review["response"]["convertedObjects"][0].to_json(),
            Object::parse(job("v2", "scheduleAt", "noon")).to_json());
}

TEST_F(ConversionTest, ManyObjectsKeepTheirOrder) {
  const Object review =
      convert("jobs.example.com/v3", job("v1", "runAt", "1") + "," + job("v2", "scheduleAt", "2") +
                                         "," + job("v1", "runAt", "3"));
  const auto converted = review["response"]["convertedObjects"];
  ASSERT_EQ(converted.size(), 3u);
  for (const std::size_t i : {0u, 1u, 2u})
    EXPECT_EQ(converted[i]["spec"]["deferredAt"].as_string(), std::to_string(i + 1));
}

TEST_F(ConversionTest, AnotherGroupIsAnError) {
  EXPECT_THAT(failure("apps/v1", job("v1", "runAt", "noon")),
              HasSubstr("do not belong to the same API group"));
}

TEST_F(ConversionTest, TheSameVersionIsAnError) {
  EXPECT_THAT(failure("jobs.example.com/v1", job("v1", "runAt", "noon")),
              HasSubstr("is in that version already"));
}

TEST_F(ConversionTest, AKindWithoutAHubIsAnError) {
  EXPECT_THAT(failure("apps/v1beta1", R"({"apiVersion":"apps/v1","kind":"Deployment"})"),
              HasSubstr("no conversion of apps/v1 Deployment is known"));
}

TEST_F(ConversionTest, AnUnknownVersionIsAnError) {
  EXPECT_THAT(failure("jobs.example.com/v9", job("v1", "runAt", "noon")), HasSubstr("version v9"));
  EXPECT_THAT(failure("jobs.example.com/v1", job("v9", "runAt", "noon")), HasSubstr("version v9"));
}

TEST_F(ConversionTest, AStatusErrorOfTheConversionIsReturned) {
  EXPECT_EQ(failure("jobs.example.com/v3", job("v1", "runAt", "bad")), "spec.runAt is no time");
  EXPECT_EQ(metric(server_, "controller_runtime_conversion_webhook_panics_total"), 0);
}

TEST_F(ConversionTest, OtherExceptionsAreNotReturned) {
  EXPECT_EQ(failure("jobs.example.com/v3", job("v1", "runAt", "content of the object")),
            "internal error occurred during conversion");
  EXPECT_EQ(metric(server_, "controller_runtime_conversion_webhook_panics_total"), 1);
}

TEST_F(ConversionTest, AConversionMayNotRenameTheObject) {
  EXPECT_THAT(failure("jobs.example.com/v3", job("v1", "runAt", "renamed")),
              HasSubstr("has changed the object's type or identity"));
}

TEST_F(ConversionTest, AnInvalidReviewIsABadRequest) {
  for (
      const char* body :
      {"{", "[1]", R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"ConversionReview"})",
       R"({"apiVersion":"apiextensions.k8s.io/v1beta1","kind":"ConversionReview","request":{}})"}) {
    const HttpsAnswer answer = ask(body);
    EXPECT_EQ(answer.status, 400) << body;
    EXPECT_EQ(answer.object().kind(), "Status") << body;
  }
}

TEST_F(ConversionTest, InvalidHubsAndSpokesAreErrors) {
  const auto nothing = [](const auto&, api::ObjectDraft&) {};
  EXPECT_THROW((server_.convert<JobV3, Website>(nothing, nothing)), InvalidArgument);
  EXPECT_THROW((server_.convert<JobV3, JobV3>(nothing, nothing)), InvalidArgument);
  EXPECT_THROW((server_.convert<JobV3, JobV1>(nothing, nothing)), InvalidArgument);
  EXPECT_THROW((server_.convert<JobV2, JobV1>(nothing, nothing)), InvalidArgument);
  const std::function<void(const JobV4&, api::ObjectDraft&)> to_hub;
  EXPECT_EQ(test::refusal<InvalidArgument>([&] { server_.convert<JobV3, JobV4>(to_hub, nothing); }),
            "the conversion of jobs.example.com/v4 ExternalJob to its hub is empty");
  const std::function<void(const JobV3&, api::ObjectDraft&)> from_hub;
  EXPECT_EQ(
      test::refusal<InvalidArgument>([&] { server_.convert<JobV3, JobV4>(nothing, from_hub); }),
      "the conversion of jobs.example.com/v4 ExternalJob from its hub is empty");
}

}  // namespace
}  // namespace lookout::controller
