// Conversion webhooks of custom resources, with valid and invalid responses.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidjson/document.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/apiserver/client_fixture.h"
#include "tests/apiserver/test_webhook.h"
#include "tests/support/held.h"
#include "tests/support/matchers.h"

namespace lookout::apiserver {
namespace {

using rapidjson::Value;

const api::Resource kNew{"shop.example.com", "v1", "Box", "boxes", true};
const api::Resource kOld{"shop.example.com", "v1beta1", "Box", "boxes", true};

using Allocator = rapidjson::Document::AllocatorType;
/// Changes a review's response before it is sent.
using Tamper = std::function<void(Value& response, Allocator& allocator)>;

/// Converts between v1, with the field size, and v1beta1, with the field oldSize.
std::string converted(const Object& review, const Tamper& tamper = {}) {
  rapidjson::Document out = review.to_document();
  Allocator& allocator = out.GetAllocator();
  Value& request = out["request"];
  const bool newer = std::string(request["desiredAPIVersion"].GetString()) == "shop.example.com/v1";
  for (Value& object : request["objects"].GetArray()) {
    object["apiVersion"].CopyFrom(request["desiredAPIVersion"], allocator);
    Value& spec = object["spec"];
    Value size = std::move(spec[newer ? "oldSize" : "size"]);
    spec.RemoveAllMembers();
    spec.AddMember(rapidjson::StringRef(newer ? "size" : "oldSize"), size, allocator);
  }
  Value response(rapidjson::kObjectType);
  response.AddMember("uid", request["uid"], allocator);
  response.AddMember("convertedObjects", request["objects"], allocator);
  Value result(rapidjson::kObjectType);
  result.AddMember("status", "Success", allocator);
  response.AddMember("result", result, allocator);
  if (tamper) tamper(response, allocator);
  out.RemoveMember("request");
  out.AddMember("response", response, allocator);
  return Object::from(out).to_json();
}

/// The definition of boxes, stored in v1. `conversion` is spec.conversion.
Object definition(const std::string& conversion) {
  const auto version = [](const char* name, const char* field, bool stored) {
    return fmt::format(
        R"({{"name":"{0}","served":true,"storage":{1},"subresources":{{"status":{{}}}},)"
        R"("selectableFields":[{{"jsonPath":".spec.{2}"}}],)"
        R"("schema":{{"openAPIV3Schema":{{"type":"object","properties":{{)"
        R"("spec":{{"type":"object","properties":{{"{2}":{{"type":"string"}}}}}},)"
        R"("status":{{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}}}}}}}})",
        name, stored, field);
  };
  return from_json(fmt::format(
      R"({{"metadata":{{"name":"boxes.shop.example.com"}},"spec":{{"group":"shop.example.com",)"
      R"("scope":"Namespaced","names":{{"plural":"boxes","singular":"box","kind":"Box"}},)"
      R"("versions":[{},{}],"conversion":{}}}}})",
      version("v1", "size", true), version("v1beta1", "oldSize", false), conversion));
}

std::string by_webhook(const std::string& client_config, const char* versions = R"("v1")") {
  return fmt::format(
      R"({{"strategy":"Webhook","webhook":{{"conversionReviewVersions":[{}],"clientConfig":{{{}}}}}}})",
      versions, client_config);
}

Object box(const std::string& name, const std::string& size, bool newer = true) {
  return from_json(
      fmt::format(R"({{"apiVersion":"shop.example.com/{}","kind":"Box","metadata":{{"name":"{}"}},)"
                  R"("spec":{{"{}":"{}"}}}})",
                  newer ? "v1" : "v1beta1", name, newer ? "size" : "oldSize", size));
}

std::string spec(const Object& object) { return object["spec"].to_json(); }

class ConversionWebhookTest : public ClientTest {
 protected:
  ConversionWebhookTest()
      : webhook_(std::make_unique<TestWebhook>(
            [this](const Object& review) { return converted(review, tamper_); })) {
    definition_ = all(kDefinitions).create(definition(by_webhook(webhook_->client_config())));
  }

  rest::ResourceClient newer() const { return in(kNew); }
  rest::ResourceClient older() const { return in(kOld); }
  void store_in_old() const {
    all(kDefinitions)
        .patch("boxes.shop.example.com", rest::PatchType::kJson,
               R"([{"op":"replace","path":"/spec/versions/0/storage","value":false},
                   {"op":"replace","path":"/spec/versions/1/storage","value":true}])");
  }
  std::size_t reviews() const { return webhook_->reviews().size(); }

  /// Set between requests.
  Tamper tamper_;
  std::unique_ptr<TestWebhook> webhook_;
  Object definition_;
};

TEST_F(ConversionWebhookTest, ObjectsAreReadAndWrittenInBothVersions) {
  const Object made = older().create(box("a", "big", false));
  EXPECT_EQ(made.api_version(), "shop.example.com/v1beta1");
  EXPECT_EQ(spec(made), R"({"oldSize":"big"})");
  EXPECT_EQ(webhook_->latest_target(), "/hook?timeout=30s");
  const Object shown = newer().get("a");
  EXPECT_EQ(shown.api_version(), "shop.example.com/v1");
  EXPECT_EQ(spec(shown), R"({"size":"big"})");
  newer().update(changed(shown, R"({"spec":{"size":"small"}})"));
  EXPECT_EQ(spec(older().get("a")), R"({"oldSize":"small"})");
  const Object patched =
      older().patch("a", rest::PatchType::kMerge, R"({"spec":{"oldSize":"tiny"}})");
  EXPECT_EQ(spec(patched), R"({"oldSize":"tiny"})");
  EXPECT_EQ(patched["metadata"]["generation"].as_int(), 3);
  EXPECT_EQ(spec(newer().get("a")), R"({"size":"tiny"})");
  older().update_status(changed(patched, R"({"status":{"full":true}})"));
  EXPECT_EQ(held(newer().get("a"))["status"].to_json(), R"({"full":true})");
  older().remove("a");
  EXPECT_EQ(status_of([&] { newer().get("a"); }).code, 404);
}

TEST_F(ConversionWebhookTest, TheStorageVersionNeedsNoWebhook) {
  newer().create(box("a", "big"));
  newer().patch("a", rest::PatchType::kMerge, R"({"spec":{"size":"small"}})");
  EXPECT_EQ(newer().list().items.size(), 1u);
  newer().remove("a");
  EXPECT_EQ(reviews(), 0u);
}

TEST_F(ConversionWebhookTest, AListIsOneReview) {
  for (const char* name : {"a", "b", "c"}) newer().create(box(name, name));
  const auto list = older().list();
  ASSERT_EQ(list.items.size(), 3u);
  EXPECT_EQ(spec(list.items[0]), R"({"oldSize":"a"})");
  EXPECT_EQ(spec(list.items[2]), R"({"oldSize":"c"})");
  EXPECT_EQ(list.items[2].name(), "c");
  ASSERT_EQ(reviews(), 1u);
  const Object review = webhook_->reviews()[0];
  EXPECT_EQ(review.api_version(), "apiextensions.k8s.io/v1");
  EXPECT_EQ(review.kind(), "ConversionReview");
  EXPECT_EQ(review["request"]["objects"].size(), 3u);
  EXPECT_EQ(review["request"]["desiredAPIVersion"].as_string(), "shop.example.com/v1beta1");
  EXPECT_NE(review["request"]["uid"].as_string(), "");
}

rest::ListOptions of_old_size(const std::string& size, int limit) {
  rest::ListOptions out;
  out.field_selector = "spec.oldSize=" + size;
  out.limit = limit;
  return out;
}

TEST_F(ConversionWebhookTest, FieldsAreThoseOfTheVersion) {
  for (const char* name : {"a", "b", "c"}) newer().create(box(name, name));
  const auto only_b = of_old_size("b", 1);
  const auto list = older().list(only_b);
  ASSERT_EQ(list.items.size(), 1u);
  EXPECT_EQ(list.items[0].name(), "b");
  EXPECT_EQ(status_of([&] { newer().list(only_b); }).code, 400);
}

TEST_F(ConversionWebhookTest, ALimitCountsSelectedObjects) {
  for (int i = 0; i < 7; ++i)
    newer().create(box(fmt::format("{}", i), i % 2 == 0 ? "even" : "odd"));
  auto even = of_old_size("even", 2);
  std::vector<std::string> pages;
  std::string version;
  do {
    const auto page = older().list(even);
    std::string names;
    for (const Object& each : page.items) names += each.name();
    pages.push_back(names);
    if (version.empty()) {
      version = page.resource_version;
      newer().create(box("8", "even"));  // all pages have the revision of the first one
    }
    EXPECT_EQ(page.resource_version, version);
    EXPECT_FALSE(page.remaining_item_count);
    even.continue_token = page.continue_token;
  } while (!even.continue_token.empty());
  EXPECT_THAT(pages, ElementsAre("02", "46"));
}

TEST_F(ConversionWebhookTest, ALimitIsReachedBeyondTheFirstThousandObjects) {
  for (int i = 0; i < 1100; ++i)
    newer().create(box(fmt::format("{:04}", i), i >= 1050 ? "late" : "early"));
  auto late = of_old_size("late", 3);
  const auto page = older().list(late);
  ASSERT_EQ(page.items.size(), 3u);
  EXPECT_EQ(page.items[0].name(), "1050");
  late.continue_token = page.continue_token;
  late.limit = 1000;
  const auto rest = older().list(late);
  ASSERT_EQ(rest.items.size(), 47u);
  EXPECT_EQ(rest.items[0].name(), "1053");
  EXPECT_EQ(rest.continue_token, "");
}

TEST_F(ConversionWebhookTest, UnknownFieldsAreRemoved) {
  tamper_ = [](Value& response, Allocator& allocator) {
    for (Value& object : response["convertedObjects"].GetArray()) {
      object["spec"].AddMember("unknown", "field", allocator);
      object.AddMember("other", "field", allocator);
    }
  };
  const Object made = older().create(box("a", "big", false));
  EXPECT_EQ(spec(made), R"({"oldSize":"big"})");
  EXPECT_FALSE(made["other"].exists());
  // Neither is it stored.
  const Object stored = newer().get("a");
  EXPECT_EQ(spec(stored), R"({"size":"big"})");
  EXPECT_FALSE(stored["other"].exists());
  const auto list = older().list();
  EXPECT_EQ(spec(list.items[0]), R"({"oldSize":"big"})");
}

TEST_F(ConversionWebhookTest, WatchesConvertToTheirVersion) {
  newer().create(box("a", "1"));
  auto watch = older().watch({});
  const auto next = [&] {
    const auto event = watch.next();
    return event ? fmt::format("{} {} {}", api::to_string(event->type), event->object.api_version(),
                               spec(event->object))
                 : "";
  };
  EXPECT_EQ(next(), R"(ADDED shop.example.com/v1beta1 {"oldSize":"1"})");
  newer().patch("a", rest::PatchType::kMerge, R"({"spec":{"size":"2"}})");
  EXPECT_EQ(next(), R"(MODIFIED shop.example.com/v1beta1 {"oldSize":"2"})");
  newer().remove("a");
  EXPECT_EQ(next(), R"(DELETED shop.example.com/v1beta1 {"oldSize":"2"})");
}

TEST_F(ConversionWebhookTest, AWatchSelectsByConvertedFields) {
  newer().create(box("a", "red"));
  newer().create(box("b", "blue"));
  rest::ListOptions red;
  red.field_selector = "spec.oldSize=red";
  auto watch = older().watch(red);
  const auto next = [&] {
    const auto event = watch.next();
    return event ? fmt::format("{} {} {}", api::to_string(event->type), event->object.name(),
                               spec(event->object))
                 : "";
  };
  EXPECT_EQ(next(), R"(ADDED a {"oldSize":"red"})");
  newer().patch("b", rest::PatchType::kMerge, R"({"spec":{"size":"red"}})");
  EXPECT_EQ(next(), R"(ADDED b {"oldSize":"red"})");
  newer().patch("a", rest::PatchType::kMerge, R"({"spec":{"size":"blue"}})");
  EXPECT_EQ(next(), R"(DELETED a {"oldSize":"red"})");
  newer().remove("b");
  EXPECT_EQ(next(), R"(DELETED b {"oldSize":"red"})");
}

TEST_F(ConversionWebhookTest, OnlyLabelsAndAnnotationsOfTheMetadataChange) {
  const Object made = newer().create(
      changed(box("a", "1"),
              R"({"metadata":{"labels":{"a":"b"},"annotations":{"c":"d"},"finalizers":["x/y"]}})"));
  tamper_ = [](Value& response, Allocator& allocator) {
    Value& metadata = response["convertedObjects"][0]["metadata"];
    metadata.RemoveMember("finalizers");
    metadata.RemoveMember("annotations");
    metadata.RemoveMember("creationTimestamp");
    metadata["resourceVersion"].SetString("1");
    metadata["labels"].AddMember("by", "webhook", allocator);
  };
  const Object shown = older().get("a");
  EXPECT_EQ(shown["metadata"]["labels"].to_json(), R"({"a":"b","by":"webhook"})");
  EXPECT_FALSE(shown["metadata"].contains("annotations"));
  EXPECT_EQ(shown["metadata"]["finalizers"].to_json(), R"(["x/y"])");
  EXPECT_EQ(shown.resource_version(), made.resource_version());
  EXPECT_EQ(shown["metadata"]["creationTimestamp"].as_string(),
            made["metadata"]["creationTimestamp"].as_string());
}

TEST_F(ConversionWebhookTest, ObjectsStoredInAnOlderVersionAreConverted) {
  newer().create(box("a", "big"));
  store_in_old();
  EXPECT_EQ(spec(older().get("a")), R"({"oldSize":"big"})");
  EXPECT_EQ(reviews(), 1u);
  EXPECT_EQ(spec(newer().get("a")), R"({"size":"big"})");
  EXPECT_EQ(reviews(), 1u);
  // A write is stored in the current storage version.
  newer().patch("a", rest::PatchType::kMerge, R"({"spec":{"size":"small"}})");
  const std::size_t before = reviews();
  EXPECT_EQ(spec(older().get("a")), R"({"oldSize":"small"})");
  EXPECT_EQ(reviews(), before);
}

// The defaults of an object's stored version are set before the conversion.
TEST_F(ConversionWebhookTest, ObjectsAreConvertedWithTheDefaultsOfTheirVersion) {
  newer().create(from_json(
      R"({"apiVersion":"shop.example.com/v1","kind":"Box","metadata":{"name":"a"},"spec":{}})"));
  all(kDefinitions)
      .patch("boxes.shop.example.com", rest::PatchType::kJson,
             R"([{"op":"add","value":"small","path":"/spec/versions/0/schema/openAPIV3Schema/)"
             R"(properties/spec/properties/size/default"}])");
  EXPECT_EQ(spec(newer().get("a")), R"({"size":"small"})");
  EXPECT_EQ(spec(older().get("a")), R"({"oldSize":"small"})");
  EXPECT_EQ(spec(older().list().items.at(0)), R"({"oldSize":"small"})");
  const auto event = older().watch({}).next();
  ASSERT_TRUE(event);
  EXPECT_EQ(spec(event->object), R"({"oldSize":"small"})");
}

TEST_F(ConversionWebhookTest, AWatchEndsWhenTheConversionChanges) {
  rest::CallOptions patience;
  patience.timeout = std::chrono::seconds(20);
  auto watch = older().watch({}, {}, patience);
  all(kDefinitions)
      .patch("boxes.shop.example.com", rest::PatchType::kMerge,
             R"({"spec":{"conversion":{"strategy":"None","webhook":null}}})");
  EXPECT_FALSE(watch.next());
}

TEST_F(ConversionWebhookTest, GarbageCollectionUsesTheStoredVersion) {
  store_in_old();
  const Object owner = in(kConfigMaps).create(config_map("owner"));
  older().create(changed(
      box("a", "big", false),
      fmt::format(R"({{"metadata":{{"ownerReferences":[{{"apiVersion":"v1","kind":"ConfigMap",)"
                  R"("name":"owner","uid":"{}"}}]}}}})",
                  owner.uid())));
  webhook_.reset();
  in(kConfigMaps).remove("owner");
  EXPECT_TRUE(eventually([&] { return older().list().items.empty(); }));
}

TEST_F(ConversionWebhookTest, AdmissionConvertsToTheVersionOfItsRules) {
  const TestWebhook hook([](const Object& review) {
    return review["request"]["object"]["spec"]["oldSize"].as_string() == "big"
               ? allowed(review)
               : review_answer(review, R"("allowed":false,"status":{"message":"only big ones"})");
  });
  all(api::Resource{"admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration",
                    "validatingwebhookconfigurations", false})
      .create(configuration("boxes", webhook("boxes.example.com", hook.client_config(),
                                             rule("shop.example.com", "v1beta1", "boxes"))));
  newer().create(box("a", "big"));
  EXPECT_THAT(status_of([&] { newer().create(box("b", "small")); }).message,
              HasSubstr("only big ones"));
}

TEST_F(ConversionWebhookTest, ADeletedNamespaceIsEmptied) {
  all(kNamespaces).create(from_json(R"({"metadata":{"name":"shop"}})"));
  in(kOld, "shop").create(box("a", "big", false));
  all(kNamespaces).remove("shop");
  ASSERT_TRUE(eventually([&] { return all(kNamespaces).list().items.size() == 4; }));
}

TEST_F(ConversionWebhookTest, AnUnreachableWebhookIsAnError) {
  newer().create(box("a", "big"));
  auto watch = older().watch({});
  ASSERT_TRUE(watch.next());
  webhook_.reset();
  const auto failure = [](const std::function<void()>& request) {
    const api::Status status = status_of(request);
    EXPECT_EQ(status.code, 500);
    EXPECT_EQ(status.reason, "InternalError");
    EXPECT_THAT(status.message, HasSubstr(" failed: Post \"https://127.0.0.1:"));
    return status.message.substr(0, status.message.find(" failed: "));
  };
  const std::string from_new =
      "Internal error occurred: conversion webhook for shop.example.com/v1, Kind=Box";
  const std::string from_old =
      "Internal error occurred: conversion webhook for shop.example.com/v1beta1, Kind=Box";
  EXPECT_EQ(failure([&] { older().get("a"); }), from_new);
  EXPECT_EQ(failure([&] { older().list(); }), from_new);
  EXPECT_EQ(failure([&] { older().create(box("b", "1", false)); }), from_old);
  EXPECT_EQ(failure([&] { older().remove("a"); }), from_new);
  EXPECT_EQ(
      failure([&] { older().patch("a", rest::PatchType::kMerge, R"({"spec":{"oldSize":"1"}})"); }),
      from_new);
  // Nothing was written, and the storage version needs no webhook. Nor does deleting all.
  EXPECT_EQ(newer().list().items.size(), 1u);
  newer().patch("a", rest::PatchType::kMerge, R"({"spec":{"size":"2"}})");
  const auto event = watch.next();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->type, api::EventType::kError);
  EXPECT_EQ(event->object["code"].as_int(), 500);
  EXPECT_THAT(std::string(event->object["message"].as_string()),
              HasSubstr("conversion webhook for shop.example.com/v1, Kind=Box failed: "));
  EXPECT_FALSE(watch.next());
  all(kDefinitions).remove("boxes.shop.example.com");
  EXPECT_TRUE(eventually([&] { return all(kDefinitions).list().items.empty(); }));
}

struct BadAnswer {
  std::string name;
  Tamper tamper;
  std::string message;
};
class BadConversionTest : public ConversionWebhookTest,
                          public testing::WithParamInterface<BadAnswer> {};

TEST_P(BadConversionTest, IsAnInternalError) {
  newer().create(box("a", "big"));
  newer().create(box("b", "small"));
  tamper_ = GetParam().tamper;
  const api::Status status = status_of([&] { older().list(); });
  EXPECT_EQ(status.code, 500);
  EXPECT_EQ(status.message,
            "Internal error occurred: conversion webhook for shop.example.com/v1, Kind=Box " +
                GetParam().message);
}

Value& metadata_of_second(Value& response) { return response["convertedObjects"][1]["metadata"]; }

INSTANTIATE_TEST_SUITE_P(
    Answers, BadConversionTest,
    testing::Values(
        BadAnswer{"TooFew", [](Value& r, auto&) { r["convertedObjects"].PopBack(); },
                  "returned 1 objects, expected 2"},
        BadAnswer{"AnotherName",
                  [](Value& r, auto&) { metadata_of_second(r)["name"].SetString("c"); },
                  "returned invalid converted object at index 1: must have the same name: b != c"},
        BadAnswer{"AnotherNamespace",
                  [](Value& r, auto&) { metadata_of_second(r)["namespace"].SetString("n"); },
                  "returned invalid converted object at index 1: must have the same namespace: "
                  "default != "
                  "n"},
        BadAnswer{
            "NoMetadata",
            [](Value& r, auto&) { r["convertedObjects"][1].RemoveMember("metadata"); },
            "returned invalid converted object at index 1: missing metadata in converted object"},
        BadAnswer{
            "LabelsOfAnotherType",
            [](Value& r, Allocator& a) { metadata_of_second(r).AddMember("labels", "no map", a); },
            "returned invalid converted object at index 1: metadata.labels: invalid type"},
        BadAnswer{"AnotherVersion",
                  [](Value& r, auto&) {
                    r["convertedObjects"][1]["apiVersion"].SetString("shop.example.com/v2");
                  },
                  "returned invalid converted object at index 1: invalid groupVersion (expected "
                  "shop.example.com/v1beta1, received shop.example.com/v2)"},
        BadAnswer{
            "AnotherKind",
            [](Value& r, auto&) { r["convertedObjects"][0]["kind"].SetString("Bag"); },
            "returned invalid converted object at index 0: must have the same kind: Box != Bag"},
        BadAnswer{"NoObject", [](Value& r, auto&) { r["convertedObjects"][0].SetInt(1); },
                  "returned invalid converted object at index 0: it is not an object"},
        BadAnswer{"Failed",
                  [](Value& r, Allocator& a) {
                    r["result"]["status"].SetString("Failed");
                    r["result"].AddMember("message", "no way", a);
                  },
                  "failed: no way"},
        BadAnswer{"FailedWithoutAMessage",
                  [](Value& r, auto&) { r["result"]["status"].SetString("Failed"); },
                  "failed: response.result.status was 'Failed', not 'Success'"}),
    [](const auto& p) { return p.param.name; });

TEST_F(ConversionWebhookTest, AResponseWithAnotherUidIsAnError) {
  newer().create(box("a", "big"));
  tamper_ = [](Value& response, auto&) { response["uid"].SetString("other"); };
  EXPECT_THAT(status_of([&] { older().get("a"); }).message, HasSubstr("expected response.uid="));
}

class ConversionValidationTest : public ClientTest {
 protected:
  std::string refusal(const std::string& conversion) const {
    const api::Status status = status_of([&] { all(kDefinitions).create(definition(conversion)); });
    EXPECT_EQ(status.code, 422);
    std::string out;
    for (const auto& cause : status.causes) out += cause.field + ": " + cause.message + "\n";
    return out;
  }
};

TEST_F(ConversionValidationTest, AWebhookNeedsAnAddressAndVersions) {
  EXPECT_EQ(refusal(R"({"strategy":"Webhook"})"),
            "spec.conversion.webhookClientConfig: Required value: required when strategy is set to "
            "Webhook\n"
            "spec.conversion.conversionReviewVersions: Required value\n");
  EXPECT_EQ(refusal(by_webhook("")),
            "spec.conversion.webhookClientConfig: Required value: exactly one of url or service is "
            "required\n");
  EXPECT_EQ(
      refusal(by_webhook(R"("url":"https://localhost","service":{"name":"a","namespace":"b"})")),
      "spec.conversion.webhookClientConfig: Required value: exactly one of url or service is "
      "required\n");
  EXPECT_THAT(refusal(by_webhook(R"("url":"http://localhost")")),
              HasSubstr("spec.conversion.webhookClientConfig.url: Invalid value"));
  EXPECT_THAT(refusal(by_webhook(R"("url":"https://localhost")", R"("v7")")),
              HasSubstr("must include at least one of v1, v1beta1"));
}

TEST_F(ConversionValidationTest, OtherStrategiesHaveNoWebhook) {
  EXPECT_EQ(refusal(R"({"strategy":"None","webhook":{"conversionReviewVersions":["v1"],)"
                    R"("clientConfig":{"url":"https://localhost"}}})"),
            "spec.conversion.webhookClientConfig: Forbidden: should not be set when strategy is "
            "not set to Webhook\n"
            "spec.conversion.conversionReviewVersions: Forbidden: should not be set when strategy "
            "is not set to Webhook\n");
  EXPECT_THAT(refusal(R"({"strategy":"Magic"})"),
              HasSubstr("spec.conversion.strategy: Unsupported value: \"Magic\""));
}

TEST_F(ConversionValidationTest, TheDefaultPortIs443) {
  const Object made =
      all(kDefinitions).create(definition(by_webhook(R"("service":{"name":"a","namespace":"b"})")));
  EXPECT_EQ(made["spec"]["conversion"]["webhook"]["clientConfig"]["service"]["port"].as_int(), 443);
}

}  // namespace
}  // namespace lookout::apiserver
