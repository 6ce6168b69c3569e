#include "controller/webhook_review.h"

#include <gtest/gtest.h>
#include <rapidjson/document.h>

#include <random>
#include <string>
#include <vector>

#include "lookout/api/json_patch.h"
#include "lookout/base/base64.h"
#include "tests/support/matchers.h"

namespace lookout::controller {
namespace {

using api::Object;
using detail::decode_admission_review;
using detail::encode_admission_review;

/// The message of the rejection; "" if there is none.
std::string refusal_of_review(const std::string& body) {
  try {
    decode_admission_review(body);
  } catch (const api::StatusError& e) {
    EXPECT_EQ(e.code(), 400);
    return e.what();
  }
  return {};
}

TEST(AdmissionReviewTest, HasAllFieldsOfTheRequest) {
  const auto request = decode_admission_review(R"({
      "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "705ab4f5", "kind": {"group": "autoscaling", "version": "v1", "kind": "Scale"},
        "resource": {"group": "apps", "version": "v1", "resource": "deployments"},
        "subResource": "scale",
        "requestKind": {"group": "autoscaling", "version": "v2", "kind": "Scale"},
        "requestResource": {"group": "apps", "version": "v2", "resource": "deployments"},
        "requestSubResource": "scale2", "name": "web", "namespace": "shop",
        "operation": "UPDATE",
        "userInfo": {"username": "eve", "uid": "14", "groups": ["a", "b"],
                     "extra": {"key": ["one", "two"]}},
        "object": {"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 2}},
        "oldObject": {"apiVersion": "autoscaling/v1", "kind": "Scale", "spec": {"replicas": 1}},
        "options": {"apiVersion": "meta.k8s.io/v1", "kind": "UpdateOptions", "fieldManager": "me"},
        "dryRun": true}})");
  EXPECT_EQ(request.uid, "705ab4f5");
  EXPECT_EQ(request.kind, (api::GroupVersionKind{"autoscaling", "v1", "Scale"}));
  EXPECT_EQ(request.resource, (api::GroupVersionResource{"apps", "v1", "deployments"}));
  EXPECT_EQ(request.subresource, "scale");
  EXPECT_EQ(request.request_kind, (api::GroupVersionKind{"autoscaling", "v2", "Scale"}));
  EXPECT_EQ(request.request_resource, (api::GroupVersionResource{"apps", "v2", "deployments"}));
  EXPECT_EQ(request.request_subresource, "scale2");
  EXPECT_EQ(request.name, "web");
  EXPECT_EQ(request.ns, "shop");
  EXPECT_EQ(request.operation, Operation::kUpdate);
  EXPECT_EQ(request.user.username, "eve");
  EXPECT_EQ(request.user.uid, "14");
  EXPECT_THAT(request.user.groups, ElementsAre("a", "b"));
  EXPECT_THAT(request.user.extra.at("key"), ElementsAre("one", "two"));
  EXPECT_EQ(request.object["spec"]["replicas"].as_int(), 2);
  EXPECT_EQ(request.old_object["spec"]["replicas"].as_int(), 1);
  EXPECT_EQ(request.options["fieldManager"].as_string(), "me");
  EXPECT_TRUE(request.dry_run);
}

TEST(AdmissionReviewTest, AnObjectWithoutATypeGetsTheRequestsKind) {
  const auto request = decode_admission_review(R"({
      "apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "request": {
        "uid": "1", "kind": {"group": "apps", "version": "v1", "kind": "Deployment"},
        "operation": "CREATE", "object": {"metadata": {"name": "web"}}}})");
  EXPECT_EQ(request.object.gvk(), (api::GroupVersionKind{"apps", "v1", "Deployment"}));
  EXPECT_EQ(request.object.name(), "web");
  EXPECT_FALSE(request.old_object);
}

TEST(AdmissionReviewTest, AReviewWithoutATypeIsV1) {
  EXPECT_EQ(
      decode_admission_review(R"({"request": {"uid": "1", "operation": "DELETE"}})").operation,
      Operation::kDelete);
}

TEST(AdmissionReviewTest, RejectsInvalidReviews) {
  EXPECT_THAT(refusal_of_review("{"), HasSubstr("cannot be decoded"));
  EXPECT_THAT(refusal_of_review("[]"), HasSubstr("cannot be decoded"));
  EXPECT_THAT(refusal_of_review(R"({"apiVersion": "v1", "kind": "Pod"})"),
              HasSubstr("not an AdmissionReview"));
  EXPECT_THAT(
      refusal_of_review(R"({"apiVersion": "admission.k8s.io/v1beta1", "kind": "AdmissionReview",
                          "request": {"uid": "1", "operation": "CREATE"}})"),
      HasSubstr("admission.k8s.io/v1beta1 is not supported"));
  EXPECT_THAT(
      refusal_of_review(R"({"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview"})"),
      HasSubstr("has no request"));
  EXPECT_THAT(refusal_of_review(R"({"request": {"operation": "CREATE"}})"),
              HasSubstr("has no uid"));
  EXPECT_THAT(refusal_of_review(R"({"request": {"uid": "1", "operation": "READ"}})"),
              HasSubstr("operation is not known"));
  EXPECT_THAT(
      refusal_of_review(R"({"request": {"uid": "1", "operation": "CREATE", "object": "secret"}})"),
      AllOf(HasSubstr("request.object is not an object"), Not(HasSubstr("secret"))));
}

TEST(AdmissionReviewTest, TheResponseHasAllFieldsOfTheHandler) {
  AdmissionResponse response = denied("no", api::reason::kInvalid, 422).warn("one").warn("two");
  response.audit_annotations["key"] = "value";
  const Object answer = Object::parse(encode_admission_review("705ab4f5", response, {}));
  EXPECT_EQ(answer.api_version(), "admission.k8s.io/v1");
  EXPECT_EQ(answer.kind(), "AdmissionReview");
  const auto given = answer["response"];
  EXPECT_EQ(given["uid"].as_string(), "705ab4f5");
  EXPECT_FALSE(given["allowed"].as_bool(true));
  EXPECT_EQ(given["status"]["code"].as_int(), 422);
  EXPECT_EQ(given["status"]["reason"].as_string(), "Invalid");
  EXPECT_EQ(given["status"]["message"].as_string(), "no");
  EXPECT_EQ(given["status"]["status"].as_string(), "Failure");
  EXPECT_EQ(given["warnings"].to_json(), R"(["one","two"])");
  EXPECT_EQ(given["auditAnnotations"].to_json(), R"({"key":"value"})");
  EXPECT_FALSE(given["patch"].exists());
  EXPECT_FALSE(given["patchType"].exists());
}

TEST(AdmissionReviewTest, InvalidUtf8IsReplaced) {
  AdmissionResponse response = denied("\xC3").warn("half \xC3").warn("whole \xC3\xA9");
  response.audit_annotations["key\xFF"] = "\xC3";
  const Object answer = Object::parse(encode_admission_review("1", response, {}));
  EXPECT_FALSE(answer["response"]["allowed"].as_bool(true));
  EXPECT_EQ(answer["response"]["status"]["message"].as_string(), "\uFFFD");
  EXPECT_EQ(answer["response"]["warnings"].to_json(), "[\"half \uFFFD\",\"whole \u00E9\"]");
  EXPECT_EQ(answer["response"]["auditAnnotations"].to_json(), "{\"key\uFFFD\":\"\uFFFD\"}");
}

TEST(AdmissionReviewTest, AllowedIs200) {
  const Object answer = Object::parse(encode_admission_review("1", allowed("fine"), {}));
  EXPECT_TRUE(answer["response"]["allowed"].as_bool());
  EXPECT_EQ(answer["response"]["status"]["code"].as_int(), 200);
  EXPECT_EQ(answer["response"]["status"]["message"].as_string(), "fine");
  EXPECT_FALSE(answer["response"]["status"]["reason"].exists());
}

TEST(AdmissionReviewTest, DeniedIs403) {
  const Object answer = Object::parse(encode_admission_review("1", denied("no"), {}));
  EXPECT_FALSE(answer["response"]["allowed"].as_bool(true));
  EXPECT_EQ(answer["response"]["status"]["code"].as_int(), 403);
  EXPECT_EQ(answer["response"]["status"]["reason"].as_string(), "Forbidden");
  AdmissionResponse bare;
  bare.allowed = false;
  const Object other = Object::parse(encode_admission_review("1", bare, {}));
  EXPECT_EQ(other["response"]["status"]["code"].as_int(), 403);
}

TEST(AdmissionReviewTest, ErroredHasItsCode) {
  const Object answer = Object::parse(encode_admission_review("1", errored(400, "wrong"), {}));
  EXPECT_FALSE(answer["response"]["allowed"].as_bool(true));
  EXPECT_EQ(answer["response"]["status"]["code"].as_int(), 400);
  EXPECT_EQ(answer["response"]["status"]["message"].as_string(), "wrong");
}

TEST(AdmissionReviewTest, AStatusIsReturnedInFull) {
  const auto error = api::StatusError::invalid(
      "example.com", "Website", "web", {{"FieldValueInvalid", "too many", "spec.replicas"}});
  const Object answer =
      Object::parse(encode_admission_review("1", denied(error).warn("careful"), {}));
  const auto status = answer["response"]["status"];
  EXPECT_EQ(status["code"].as_int(), 422);
  EXPECT_EQ(status["details"]["causes"][0]["field"].as_string(), "spec.replicas");
  EXPECT_EQ(answer["response"]["warnings"][0].as_string(), "careful");
}

TEST(AdmissionReviewTest, APatchIsBase64) {
  const Object answer = Object::parse(encode_admission_review("1", allowed(), "[]"));
  EXPECT_EQ(answer["response"]["patchType"].as_string(), "JSONPatch");
  EXPECT_EQ(decode_base64(answer["response"]["patch"].as_string()), "[]");
}

// ---------------------------------------------------------------------------------- patches

std::string patch_of(const std::string& from, const std::string& to) {
  return detail::json_patch(Object::parse(from), Object::parse(to));
}

/// `from` with the patch, as the API server applies it.
Object patched(const Object& from, const std::string& patch) {
  rapidjson::Document document = from.to_document();
  rapidjson::Document operations;
  operations.Parse(patch.c_str());
  EXPECT_FALSE(operations.HasParseError()) << patch;
  api::apply_json_patch(document, operations, document.GetAllocator());
  return Object::from(document);
}

TEST(AdmissionPatchTest, IsEmptyWithoutADifference) {
  EXPECT_EQ(patch_of(R"({"a": [1, {"b": null}]})", R"({"a": [1, {"b": null}]})"), "");
}

TEST(AdmissionPatchTest, ContainsOnlyTheDifferences) {
  EXPECT_EQ(patch_of(R"({"a": 1, "b": {"c": 2, "d": 3}})", R"({"a": 1, "b": {"c": 4, "d": 3}})"),
            R"([{"value":4,"path":"/b/c","op":"replace"}])");
  EXPECT_EQ(patch_of(R"({"a": 1, "x": {}})", R"({"a": 1, "y": {"z": null}})"),
            R"([{"path":"/x","op":"remove"},{"value":{"z":null},"path":"/y","op":"add"}])");
  EXPECT_EQ(patch_of(R"({"a": {}})", R"({"a": []})"),
            R"([{"value":[],"path":"/a","op":"replace"}])");
}

TEST(AdmissionPatchTest, EscapesNames) {
  EXPECT_EQ(patch_of(R"({"m": {}})", R"({"m": {"a.b/c~d": "e"}})"),
            R"([{"value":"e","path":"/m/a.b~1c~0d","op":"add"}])");
}

TEST(AdmissionPatchTest, KeepsTheRestOfAList) {
  EXPECT_EQ(patch_of(R"({"a": [1, 2, 3]})", R"({"a": [1, 2, 9, 3]})"),
            R"([{"value":9,"path":"/a/2","op":"add"}])");
  EXPECT_EQ(patch_of(R"({"a": [1, 2, 3, 4]})", R"({"a": [1, 4]})"),
            R"([{"path":"/a/2","op":"remove"},{"path":"/a/1","op":"remove"}])");
  EXPECT_EQ(patch_of(R"({"a": [{"n": "x", "v": 1}, {"n": "y"}]})",
                     R"({"a": [{"n": "x", "v": 2}, {"n": "y"}]})"),
            R"([{"value":2,"path":"/a/0/v","op":"replace"}])");
}

/// Random objects that often share parts.
std::string random_json(std::minstd_rand& random, int depth) {
  const auto pick = [&](unsigned count) { return static_cast<unsigned>(random() % count); };
  switch (depth == 0 ? pick(4) : pick(7)) {
    case 0:
      return std::to_string(pick(3));
    case 1:
      return "null";
    case 2:
      return "true";
    case 3:
      return R"("t")";
    case 4: {
      std::string out = "[";
      for (unsigned i = pick(5); i > 0; --i) {
        out += random_json(random, depth - 1);
        if (i > 1) out += ",";
      }
      return out + "]";
    }
    default: {
      std::string out = "{";
      for (const char* name : {"name", "a/b", "c~d", "spec"}) {
        if (pick(2) == 0) continue;
        if (out.size() > 1) out += ",";
        out += '"' + std::string(name) + "\":" + random_json(random, depth - 1);
      }
      return out + "}";
    }
  }
}

TEST(AdmissionPatchTest, TurnsOneObjectIntoTheOther) {
  std::minstd_rand random(7);
  constexpr int kRounds = 500;
  constexpr int kDepth = 4;
  for (int i = 0; i < kRounds; ++i) {
    const Object from = Object::parse(R"({"o":)" + random_json(random, kDepth) + "}");
    const Object to = Object::parse(R"({"o":)" + random_json(random, kDepth) + "}");
    const std::string patch = detail::json_patch(from, to);
    if (patch.empty()) {
      EXPECT_EQ(from.to_json(), to.to_json());
      continue;
    }
    ASSERT_EQ(patched(from, patch).to_json(), to.to_json()) << from.to_json() << "\n" << patch;
  }
}

// ---------------------------------------------------------------------------------- validators

TEST(ValidatorTest, CallsTheFunctionOfTheOperation) {
  std::vector<std::string> calls;
  const auto note = [&calls](const char* name) {
    return [&calls, name](const Admission<Object>&) {
      calls.emplace_back(name);
      return denied(name);
    };
  };
  Validator<Object> validator{note("create"), note("update"), note("remove")};
  Admission<Object> request;
  for (const Operation each : {Operation::kCreate, Operation::kUpdate, Operation::kDelete}) {
    request.operation = each;
    EXPECT_FALSE(validator(request).allowed);
  }
  EXPECT_THAT(calls, ElementsAre("create", "update", "remove"));
  request.operation = Operation::kConnect;
  EXPECT_TRUE(validator(request).allowed);
  validator.create = nullptr;
  request.operation = Operation::kCreate;
  EXPECT_TRUE(validator(request).allowed);
}

}  // namespace
}  // namespace lookout::controller
