// Ownership of fields through changes and applied configurations, without a server.
#include "apiserver/fields/field_manager.h"

#include <gtest/gtest.h>

#include <string>

#include "lookout/api/object.h"
#include "lookout/api/status.h"
#include "tests/apiserver/fields/field_texts.h"

namespace lookout::apiserver::fields {
namespace {

constexpr const char* kType = R"("apiVersion":"v1","kind":"ConfigMap",)";

json::Document config_map(const std::string& data, const std::string& metadata = "") {
  return value(std::string("{") + kType + R"("metadata":{"name":"m")" + metadata + R"(},"data":)" +
               data + "}");
}

api::Time at(const char* time) { return *api::parse_time(time); }

FieldManager manager(const std::string& name, const char* time = "2026-01-01T00:00:00Z") {
  ObjectType type{{"", "v1", "ConfigMap"},
                  FieldSchema::of(*api::detail::Type::of_kind("", "v1", "ConfigMap")),
                  OwnableFields::of("", "configmaps", "", false, false),
                  "",
                  [](std::string_view version) { return version == "v1" || version == "v0"; }};
  return {std::move(type), name, at(time)};
}

/// "manager operation fields" of each entry.
std::string owners(const json::Value& object) {
  std::string out;
  const json::Value* entries = managed_fields_of(object);
  if (entries == nullptr) return out;
  for (const auto& entry : entries->GetArray()) {
    out += std::string(json::text(entry, "manager")) + " " +
           std::string(json::text(entry, "operation")) + " " + json::to_json(entry["fieldsV1"]) +
           "\n";
  }
  return out;
}

json::Document updated(const json::Value* live, json::Document object, const std::string& by,
                       const char* time = "2026-01-01T00:00:00Z") {
  manager(by, time).update(object, live, object.GetAllocator());
  return object;
}

TEST(Updating, MakesTheCreatorTheOwner) {
  const auto object = updated(nullptr, config_map(R"({"a":"1"})"), "c");
  EXPECT_EQ(owners(object), "c Update {\"f:data\":{\"f:a\":{},\".\":{}}}\n");
}

TEST(Updating, MakesTheWriterOfAFieldItsOnlyOwner) {
  const auto first = updated(nullptr, config_map(R"({"a":"1","b":"1"})"), "c");
  const auto second = updated(&first, config_map(R"({"a":"2","b":"1"})"), "d");
  EXPECT_EQ(owners(second),
            "c Update {\"f:data\":{\"f:b\":{},\".\":{}}}\nd Update {\"f:data\":{\"f:a\":{}}}\n");
}

TEST(Updating, RemovesOwnersOfRemovedFields) {
  const auto first = updated(nullptr, config_map(R"({"a":"1","b":"1"})"), "c");
  const auto second = updated(&first, config_map(R"({"a":"1","b":"1","d":"1"})"), "d");
  const auto third = updated(&second, config_map(R"({"a":"1","b":"1"})"), "e");
  EXPECT_EQ(owners(third), owners(first));
}

TEST(Updating, ChangesTheTimeOnlyOfTheOwnerOfTheChange) {
  const auto first = updated(nullptr, config_map(R"({"a":"1"})"), "c");
  const auto same = updated(&first, config_map(R"({"a":"1"})"), "c", "2026-01-01T00:01:00Z");
  EXPECT_TRUE(same["metadata"]["managedFields"] == first["metadata"]["managedFields"]);
  const auto other = updated(&first, config_map(R"({"a":"2"})"), "c", "2026-01-01T00:01:00Z");
  EXPECT_EQ(json::text(other["metadata"]["managedFields"][0], "time"), "2026-01-01T00:01:00Z");
}

TEST(Updating, UsesTheOwnersInTheRequest) {
  const auto first = updated(nullptr, config_map(R"({"a":"1"})"), "c");
  // No entries, an invalid entry, and another owner.
  EXPECT_EQ(owners(updated(&first, config_map(R"({"a":"1"})"), "x")), owners(first));
  EXPECT_EQ(owners(updated(
                &first, config_map(R"({"a":"1"})", R"(,"managedFields":[{"manager":"y"}])"), "x")),
            owners(first));
  EXPECT_EQ(owners(updated(&first,
                           config_map(R"({"a":"1"})",
                                      R"(,"managedFields":[{"manager":"y","operation":"Apply",
                                 "apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:a":{}}}}])"),
                           "x")),
            "y Apply {\"f:data\":{\"f:a\":{}}}\n");
}

TEST(Updating, RecordsNothingAfterAReset) {
  const auto first = updated(nullptr, config_map(R"({"a":"1"})"), "c");
  const auto reset = updated(&first, config_map(R"({"a":"1"})", R"(,"managedFields":[{}])"), "c");
  EXPECT_EQ(owners(reset), "");
  EXPECT_EQ(owners(updated(&reset, config_map(R"({"a":"2"})"), "c")), "");
}

/// The same owners, in a form that must be normalized.
json::Document spelled_otherwise(const json::Value& owned) {
  json::Document out;
  static_cast<json::Value&>(out) = json::deep_copy(owned, out.GetAllocator());
  json::Value& fields = (*managed_fields_of(out))[0]["fieldsV1"];
  fields.AddMember("x:unknown", json::Value(rapidjson::kObjectType), out.GetAllocator());
  return out;
}

TEST(Updating, TheFastPathGivesTheSameOwners) {
  const auto first = updated(nullptr, config_map(R"({"a":"1","b":"1"})"), "c");
  const auto live =
      updated(&first, config_map(R"({"a":"1","b":"1","d":"1"})"), "d", "2026-01-01T00:00:05Z");
  for (const char* data :
       {R"({"a":"1","b":"1","d":"1"})", R"({"a":"2","b":"1","d":"1"})",
        R"({"a":"1","b":"1","d":"2"})", R"({"a":"2","b":"1","d":"2"})",
        R"({"a":"1","b":"1","d":"1","e":"1"})", R"({"a":"1","d":"1"})", R"({"a":"2","d":"1"})",
        R"({"a":"1","b":"1"})", R"({"a":"2","b":"2"})", "{}", "null"}) {
    for (const char* by : {"c", "d", "e"}) {
      json::Document sent = config_map(data);
      set_managed_fields(sent, json::deep_copy(*managed_fields_of(live), sent.GetAllocator()),
                         sent.GetAllocator());
      json::Document other = spelled_otherwise(sent);
      const char* const time = "2026-01-01T00:00:09Z";
      const auto expected = api::Object::from(updated(&live, std::move(other), by, time));
      EXPECT_EQ(api::Object::from(updated(&live, std::move(sent), by, time)), expected)
          << data << by << expected.to_json();
      // Fields that are not sent are unchanged.
      EXPECT_EQ(api::Object::from(updated(&live, config_map(data), by, time)), expected)
          << data << by;
    }
  }
}

TEST(Updating, RemovesOwnersInRemovedVersions) {
  auto live = config_map(R"({"a":"1"})", R"(,"managedFields":[
      {"manager":"old","operation":"Update","apiVersion":"v0alpha1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:a":{}}}},
      {"manager":"other","operation":"Update","apiVersion":"v0","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:a":{}}}}])");
  const auto object = updated(&live, config_map(R"({"a":"1","b":"1"})"), "c");
  EXPECT_EQ(owners(object),
            "other Update {\"f:data\":{\"f:a\":{}}}\nc Update {\"f:data\":{\"f:b\":{}}}\n");
}

TEST(Applying, CreatesAnObject) {
  const auto object = manager("a").apply(nullptr, config_map(R"({"x":"1"})"), false);
  EXPECT_EQ(owners(object), "a Apply {\"f:data\":{\"f:x\":{}}}\n");
}

TEST(Applying, RecordsAnOwnerOfEarlierFields) {
  const auto live = config_map(R"({"x":"1"})");
  const auto object = manager("a").apply(&live, config_map(R"({"y":"1"})"), false);
  EXPECT_EQ(owners(object),
            "a Apply {\"f:data\":{\"f:y\":{}}}\nbefore-first-apply Update "
            "{\"f:data\":{\"f:x\":{},\".\":{}}}\n");
}

TEST(Applying, RemovesFieldsOfOnlyThisManager) {
  const auto a = manager("a").apply(nullptr, config_map(R"({"x":"1","y":"1"})"), false);
  const auto b = manager("b").apply(&a, config_map(R"({"y":"1"})"), false);
  const auto c = manager("a").apply(&b, config_map(R"({"z":"1"})"), false);
  EXPECT_EQ(json::to_json(c["data"]), R"({"y":"1","z":"1"})");
}

TEST(Applying, KeepsTheTimeIfTheObjectDoesNotChange) {
  const auto a = manager("a").apply(nullptr, config_map(R"({"x":"1"})"), false);
  const auto again =
      manager("a", "2026-01-01T00:01:00Z").apply(&a, config_map(R"({"x":"1"})"), false);
  EXPECT_TRUE(again == a);
}

TEST(Applying, ConflictsWithOtherOwnersUnlessItIsForced) {
  const auto a = manager("a").apply(nullptr, config_map(R"({"x":"1","y":"1"})"), false);
  try {
    manager("b").apply(&a, config_map(R"({"x":"2","y":"2"})"), false);
    FAIL() << "no conflict";
  } catch (const api::StatusError& e) {
    EXPECT_EQ(e.status().code, 409);
    EXPECT_EQ(e.status().message,
              "Apply failed with 2 conflicts: conflicts with \"a\":\n- .data.x\n- .data.y");
    ASSERT_EQ(e.status().causes.size(), 2u);
    EXPECT_EQ(e.status().causes[1],
              (api::StatusCause{"FieldManagerConflict", "conflict with \"a\"", ".data.y"}));
  }
  const auto forced = manager("b").apply(&a, config_map(R"({"x":"2"})"), true);
  EXPECT_EQ(owners(forced),
            "a Apply {\"f:data\":{\"f:y\":{}}}\nb Apply {\"f:data\":{\"f:x\":{}}}\n");
}

TEST(Applying, TakesOverFromClientSideApplyOfKubectl) {
  const std::string annotation =
      R"(,"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{\"apiVersion\":\"v1\",\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"m\"},\"data\":{\"x\":\"1\",\"y\":\"old\"}}"})";
  const auto live =
      updated(nullptr, config_map(R"({"x":"1","y":"1"})", annotation), "kubectl-client-side-apply");
  const auto object = manager("kubectl").apply(&live, config_map(R"({"x":"<2>"})"), false);
  EXPECT_EQ(json::text(object["data"], "x"), "<2>");
  EXPECT_EQ(json::text(object["metadata"]["annotations"],
                       "kubectl.kubernetes.io/last-applied-configuration"),
            "{\"apiVersion\":\"v1\",\"data\":{\"x\":\"\\u003c2\\u003e\"},\"kind\":\"ConfigMap\","
            "\"metadata\":{\"name\":\"m\"}}\n");
  // y was changed by another manager, so it conflicts. Other managers do not have this exception.
  EXPECT_THROW(manager("kubectl").apply(&live, config_map(R"({"y":"2"})"), false),
               api::StatusError);
  EXPECT_THROW(manager("b").apply(&live, config_map(R"({"x":"2"})"), false), api::StatusError);
}

TEST(Applying, RemovesAConfigurationOfKubectlThatIsTooLarge) {
  const auto live = updated(
      nullptr,
      config_map(R"({"x":"1"})",
                 R"(,"annotations":{"kubectl.kubernetes.io/last-applied-configuration":"{}"})"),
      "u");
  const auto object = manager("kubectl").apply(
      &live, config_map(R"({"y":")" + std::string(256 * 1024, 'y') + R"("})"), false);
  EXPECT_EQ(json::find(object["metadata"], "annotations"), nullptr);
}

TEST(Applying, RemovesAListThatItEmpties) {
  constexpr const char* kData = R"({"x":"1"})";
  const auto live = updated(nullptr, config_map(kData, R"(,"finalizers":["u/u"])"), "u");
  const auto both = manager("a").apply(&live, config_map(kData, R"(,"finalizers":["a/a"])"), false);
  // The updater removes its finalizer, but still owns the list.
  const auto less = updated(&both, config_map(kData, R"(,"finalizers":["a/a"])"), "u");
  EXPECT_EQ(
      owners(less),
      "a Apply {\"f:data\":{\"f:x\":{}},\"f:metadata\":{\"f:finalizers\":{\"v:\\\"a/a\\\"\":{}}}}\n"
      "u Update {\"f:data\":{\"f:x\":{},\".\":{}},\"f:metadata\":{\"f:finalizers\":{}}}\n");
  const auto none = manager("a").apply(&less, config_map(kData), false);
  EXPECT_EQ(json::find(none["metadata"], "finalizers"), nullptr);
  EXPECT_EQ(owners(none),
            "a Apply {\"f:data\":{\"f:x\":{}}}\n"
            "u Update {\"f:data\":{\"f:x\":{},\".\":{}}}\n");
}

TEST(OwnableFieldsOfARequest, FollowTheSubresource) {
  const auto paths = [](std::string_view group, std::string_view plural,
                        std::string_view subresource) {
    FieldSet set;
    for (const auto& path :
         std::vector<std::vector<const char*>>{{"metadata", "labels", "l"},
                                               {"spec", "x"},
                                               {"status", "y"},
                                               {"spec", "ephemeralContainers", "e"}}) {
      std::vector<PathElement> elements;
      for (const char* name : path) elements.push_back(PathElement::field(name));
      set.insert(elements);
    }
    std::string out;
    for (const auto& path :
         OwnableFields::of(group, plural, subresource, group == "example.com", true)
             .filtered(set)
             .paths())
      out += path + " ";
    return out;
  };
  EXPECT_EQ(paths("", "pods", ""), ".metadata.labels.l .spec.x .spec.ephemeralContainers.e ");
  EXPECT_EQ(paths("", "pods", "status"), ".metadata.labels.l .status.y ");
  EXPECT_EQ(paths("apps", "deployments", "status"), ".status.y ");
  EXPECT_EQ(paths("resource.k8s.io", "resourceclaims", "status"), ".status.y ");
  EXPECT_EQ(paths("admissionregistration.k8s.io", "validatingadmissionpolicies", "status"),
            ".status.y ");
  EXPECT_EQ(paths("certificates.k8s.io", "certificatesigningrequests", ""), ".metadata.labels.l ");
  EXPECT_EQ(paths("example.com", "things", "status"), ".status.y ");
  EXPECT_EQ(paths("", "pods", "ephemeralcontainers"), ".spec.ephemeralContainers.e ");
}

TEST(ManagerNames, ComeFromTheParameterOrTheUserAgent) {
  EXPECT_EQ(manager_of("a", "b/1"), "a");
  EXPECT_EQ(manager_of("", "kubectl/v1.36 (linux)"), "kubectl");
  EXPECT_EQ(manager_of("", "a\x01z"), "az");
  EXPECT_EQ(manager_of("", std::string(200, 'x')), std::string(128, 'x'));
  EXPECT_EQ(manager_of("", std::string(127, 'x') + "\xc3\xa4"), std::string(127, 'x'));
  EXPECT_EQ(manager_of("", ""), "");
}

}  // namespace
}  // namespace lookout::apiserver::fields
