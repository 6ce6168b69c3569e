// CustomResourceDefinitions and their resources.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "tests/apiserver/client_fixture.h"
#include "tests/apiserver/http_client.h"
#include "tests/apiserver/wrapped_backend.h"
#include "tests/support/held.h"

namespace lookout::apiserver {
namespace {

const api::Resource kTabs{"stable.example.com", "v1", "CronTab", "crontabs", true};
const api::Resource kBetaTabs{"stable.example.com", "v1beta1", "CronTab", "crontabs", true};

constexpr const char* kDefinition = R"({
  "apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
  "metadata":{"name":"crontabs.stable.example.com"},
  "spec":{"group":"stable.example.com","scope":"Namespaced",
    "names":{"plural":"crontabs","singular":"crontab","kind":"CronTab","shortNames":["ct"]},
    "versions":[
      {"name":"v1beta1","served":true,"storage":false,
       "schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}},
      {"name":"v1","served":true,"storage":true,
       "schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true,
         "properties":{"spec":{"type":"object","x-kubernetes-preserve-unknown-fields":true,
           "properties":{"color":{"type":"string"}}}}}},
       "selectableFields":[{"jsonPath":".spec.color"}],
       "subresources":{"status":{},"scale":{"specReplicasPath":".spec.replicas",
         "statusReplicasPath":".status.replicas","labelSelectorPath":".status.selector"}}},
      {"name":"v0","served":false,"storage":false,
       "schema":{"openAPIV3Schema":{"type":"object"}}}]}})";

Object tab(const std::string& name, const std::string& spec = R"("cronSpec":"* * *")",
           const std::string& version = "v1") {
  return from_json(R"({"apiVersion":"stable.example.com/)" + version +
                   R"(","kind":"CronTab","metadata":{"name":")" + name + R"("},"spec":{)" + spec +
                   R"(},"status":{"replicas":1}})");
}

class CustomResources : public ClientTest {
 protected:
  CustomResources() { definition_ = all(kDefinitions).create(from_json(kDefinition)); }
  Object definition_;
};

TEST_F(CustomResources, ADefinitionIsEstablishedAtOnce) {
  const api::Value status = definition_["status"];
  std::vector<std::string> conditions;
  for (const api::Value condition : status["conditions"].elements()) {
    conditions.push_back(std::string(condition["type"].as_string()) + "=" +
                         std::string(condition["status"].as_string()));
  }
  EXPECT_EQ(conditions, (std::vector<std::string>{"NamesAccepted=True", "Established=True"}));
  EXPECT_EQ(status["acceptedNames"]["listKind"].as_string(), "CronTabList");
  EXPECT_EQ(status["storedVersions"].to_json(), R"(["v1"])");
  // Stable versions come first.
  const Object group = Object::parse(http(server_.port(), "GET", "/apis/stable.example.com").body);
  EXPECT_EQ(group["preferredVersion"]["version"].as_string(), "v1");
  EXPECT_EQ(group["versions"].size(), 2u);
}

// kubectl uses the first resource with a short name.
/// (The same as in tests/testdata/kube-1.36/list.)
TEST_F(CustomResources, TheServerOwnsTheStatusOfADefinition) {
  const Object definition = all(kDefinitions).get("crontabs.stable.example.com");
  std::string fields;
  for (const api::Value one : definition["metadata"]["managedFields"].elements()) {
    if (one["subresource"].as_string() != "status") continue;
    EXPECT_EQ(one["manager"].as_string(), "kube-apiserver");
    EXPECT_EQ(one["operation"].as_string(), "Update");
    fields = one["fieldsV1"].to_json();
  }
  for (const char* field : {R"("f:acceptedNames":{"f:kind")", R"("k:{\"type\":\"Established\"}")",
                            R"("k:{\"type\":\"NamesAccepted\"}")"})
    EXPECT_THAT(fields, testing::HasSubstr(field));
}

TEST_F(CustomResources, GroupsAndVersionsAreInPreferenceOrder) {
  const auto define = [&](const std::string& plural, const std::string& group,
                          const std::string& kind, const std::string& version) {
    Object definition = changed(from_json(kDefinition),
                                R"({"metadata":{"name":")" + plural + "." + group +
                                    R"("},"spec":{"group":")" + group + R"(","names":{"plural":")" +
                                    plural + R"(","singular":")" + kind + R"(","kind":")" + kind +
                                    R"(","shortNames":null},"versions":[
        {"name":")" + version + R"(","served":true,"storage":true,
         "schema":{"openAPIV3Schema":{"type":"object"}}}]}})");
    all(kDefinitions).create(definition);
  };
  define("aardvarks", "test.com", "aardvark", "v1");
  define("foos", "bar.com", "foo", "v1");
  define("aardvarks", "stable.example.com", "aardvark", "v1alpha1");
  define("zebras", "stable.example.com", "zebra", "v2");
  std::vector<std::string> groups;
  const Object list = Object::parse(http(server_.port(), "GET", "/apis").body);
  for (const api::Value group : list["groups"].elements()) {
    const std::string_view name = group["name"].as_string();
    if (name.ends_with(".com")) {
      groups.push_back(std::string(name) + "/" +
                       std::string(group["preferredVersion"]["version"].as_string()));
    }
  }
  EXPECT_EQ(groups,
            (std::vector<std::string>{"bar.com/v1", "stable.example.com/v2", "test.com/v1"}));
}

// Lists in a status may be null, because Go writes empty lists like that. Stored versions are an
// exception: objects will be stored in the storage version.
TEST_F(CustomResources, ADefinitionMayHaveAStatusWithoutLists) {
  constexpr const char* kName = "crontabs.stable.example.com";
  const std::string path =
      std::string("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/") + kName;
  Object bare = changed(definition_, R"({"status":{"conditions":[],"storedVersions":[]}})");
  bare = all(kDefinitions).update_status(bare);
  EXPECT_EQ(bare["status"]["storedVersions"].to_json(), R"(["v1"])");
  const Object again =
      all(kDefinitions)
          .patch(kName, rest::PatchType::kMerge, R"({"metadata":{"labels":{"a":"b"}}})");
  EXPECT_EQ(again["status"]["storedVersions"].to_json(), R"(["v1"])");
  const auto nulls = http(server_.port(), "PATCH", path + "/status",
                          R"({"status":{"conditions":null,"storedVersions":null}})",
                          {{"Content-Type", "application/merge-patch+json"}});
  EXPECT_EQ(nulls.code, 200);
  all(kDefinitions).remove(kName);
  EXPECT_TRUE(eventually([&] { return http(server_.port(), "GET", path).code == 404; }));
}

/// Conditions as "type=status reason: message".
std::vector<std::string> conditions_of(const Object& definition) {
  std::vector<std::string> out;
  for (const api::Value condition : definition["status"]["conditions"].elements()) {
    out.push_back(fmt::format("{}={} {}: {}", condition["type"].as_string(),
                              condition["status"].as_string(), condition["reason"].as_string(),
                              condition["message"].as_string()));
  }
  return out;
}

class DefinitionNames : public CustomResources {
 protected:
  /// A definition with one version; `names` beside plural, as JSON.
  static Object definition(const std::string& plural, const std::string& names,
                           const std::string& group = "stable.example.com") {
    return from_json(R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",
      "metadata":{"name":")" +
                     plural + "." + group + R"("},"spec":{"group":")" + group +
                     R"(","scope":"Namespaced","names":{"plural":")" + plural + R"(",)" + names +
                     R"(},"versions":[{"name":"v1","served":true,"storage":true,
        "schema":{"openAPIV3Schema":{"type":"object"}}}]}})");
  }
  Object define(const std::string& plural, const std::string& names,
                const std::string& group = "stable.example.com") {
    return all(kDefinitions).create(definition(plural, names, group));
  }
  int code_of(const std::string& plural) {
    return http(server_.port(), "GET", "/apis/stable.example.com/v1/" + plural).code;
  }

  static constexpr const char* kAccepted = "NamesAccepted=True NoConflicts: no conflicts found";
  static constexpr const char* kEstablished =
      "Established=True InitialNamesAccepted: the initial names have been accepted";
  static constexpr const char* kNotEstablished =
      "Established=False NotAccepted: not all names are accepted";
};

// The messages are those of kube-apiserver's naming controller.
TEST_F(DefinitionNames, BelongToTheFirstDefinition) {
  const Object second = define("cats", R"("kind":"Cat","shortNames":["cc","ct"])");
  EXPECT_EQ(
      conditions_of(second),
      (std::vector<std::string>{R"(NamesAccepted=False ShortNamesConflict: "ct" is already in use)",
                                kNotEstablished}));
  EXPECT_EQ(second["status"]["acceptedNames"].to_json(),
            R"({"plural":"cats","singular":"cat","kind":"Cat","listKind":"CatList"})");
  EXPECT_EQ(code_of("cats"), 404);
  EXPECT_EQ(code_of("crontabs"), 200);
  const Object same_kind = define("tabs", R"("kind":"CronTab")");
  EXPECT_EQ(conditions_of(same_kind),
            (std::vector<std::string>{
                R"(NamesAccepted=False ListKindConflict: "CronTabList" is already in use)",
                kNotEstablished}));
  const Object two = define("dogs", R"("kind":"Dog","shortNames":["ct","crontab","dg"])");
  EXPECT_EQ(conditions_of(two)[0],
            "NamesAccepted=False ShortNamesConflict: "
            R"(["ct" is already in use, "crontab" is already in use])");
  // Each group has its own names.
  EXPECT_EQ(conditions_of(define("cats", R"("kind":"CronTab","shortNames":["ct"])", "test.com")),
            (std::vector<std::string>{kAccepted, kEstablished}));
}

TEST_F(DefinitionNames, AreFreeAfterADeletion) {
  define("cats", R"("kind":"Cat","shortNames":["ct"])");
  all(kDefinitions).remove("crontabs.stable.example.com");
  ASSERT_TRUE(eventually([&] { return code_of("cats") == 200; }));
  const Object cats = all(kDefinitions).get("cats.stable.example.com");
  EXPECT_EQ(conditions_of(cats), (std::vector<std::string>{kAccepted, kEstablished}));
  EXPECT_EQ(cats["status"]["acceptedNames"]["shortNames"].to_json(), R"(["ct"])");
}

// A served definition keeps its names while it requests one that another definition has.
TEST_F(DefinitionNames, MayConflictInALaterChange) {
  define("cats", R"("kind":"Cat","shortNames":["cc"])");
  const Object wanted = all(kDefinitions)
                            .patch("cats.stable.example.com", rest::PatchType::kMerge,
                                   R"({"spec":{"names":{"shortNames":["ct"]}}})");
  EXPECT_EQ(
      conditions_of(wanted),
      (std::vector<std::string>{R"(NamesAccepted=False ShortNamesConflict: "ct" is already in use)",
                                kEstablished}));
  EXPECT_EQ(wanted["status"]["acceptedNames"]["shortNames"].to_json(), R"(["cc"])");
  EXPECT_EQ(code_of("cats"), 200);
  const Object free = all(kDefinitions)
                          .patch("cats.stable.example.com", rest::PatchType::kMerge,
                                 R"({"spec":{"names":{"shortNames":["cx"]}}})");
  EXPECT_EQ(conditions_of(free), (std::vector<std::string>{kAccepted, kEstablished}));
  const Object list =
      Object::parse(http(server_.port(), "GET", "/apis/stable.example.com/v1").body);
  for (const api::Value resource : list["resources"].elements()) {
    if (resource["name"].as_string() == "cats") {
      EXPECT_EQ(resource["shortNames"].to_json(), R"(["cx"])");
    }
  }
}

// After an error response, a client would retry the create and get "already exists".
TEST(DefinitionThatIsWritten, ReturnsBeforeItIsServed) {
  const auto backend =
      std::make_shared<WrappedBackend>("apiextensions.k8s.io/customresourcedefinitions");
  const auto broken = std::make_shared<std::atomic<bool>>(false);
  backend->on_list = [broken](const std::string& /*key*/) -> Awaitable<void> {
    if (*broken)
      throw storage::StorageError(storage::StorageError::Code::kUnreachable, "definitions");
    co_return;
  };
  const RunningServer running(backend);
  *broken = true;
  running.client.resource(kDefinitions).create(from_json(kDefinition));
  EXPECT_EQ(http(running.server.port(), "GET", "/apis/stable.example.com/v1/crontabs").code, 404);
  *broken = false;
  EXPECT_TRUE(eventually([&] {
    return http(running.server.port(), "GET", "/apis/stable.example.com/v1/crontabs").code == 200;
  }));
}

// Before it is established, a definition may request another kind.
TEST_F(DefinitionNames, MayBeChangedUntilTheyAreAccepted) {
  define("tabs", R"("kind":"CronTab")");
  const Object changed =
      all(kDefinitions)
          .patch("tabs.stable.example.com", rest::PatchType::kMerge,
                 R"({"spec":{"names":{"kind":"Tab","listKind":"TabList","singular":"tab"}}})");
  EXPECT_EQ(conditions_of(changed), (std::vector<std::string>{kAccepted, kEstablished}));
  EXPECT_EQ(code_of("tabs"), 200);
  EXPECT_EQ(status_of([&] {
              all(kDefinitions)
                  .patch("tabs.stable.example.com", rest::PatchType::kMerge,
                         R"({"spec":{"names":{"kind":"Other"}}})");
            }).code,
            422);
}

TEST_F(CustomResources, InstancesBehaveLikeOtherObjects) {
  const Object created = in(kTabs).create(tab("a"));
  EXPECT_EQ(created["metadata"]["generation"].as_int(), 1);
  EXPECT_FALSE(created.body().contains("status"));  // the status is a subresource
  const Object updated = in(kTabs).update(
      changed(created, R"({"spec":{"cronSpec":"1 * *"},"status":{"replicas":5}})"));
  EXPECT_EQ(updated["metadata"]["generation"].as_int(), 2);
  EXPECT_FALSE(updated.body().contains("status"));
  const Object status = in(kTabs).update_status(
      changed(updated, R"({"metadata":{"labels":{"a":"b"}},"status":{"replicas":5}})"));
  EXPECT_EQ(status["status"]["replicas"].as_int(), 5);
  EXPECT_EQ(status["metadata"]["generation"].as_int(), 2);
  EXPECT_FALSE(status["metadata"].contains("labels"));
  // Items of custom lists have their type.
  const Object list = Object::parse(
      http(server_.port(), "GET", "/apis/stable.example.com/v1/namespaces/default/crontabs").body);
  EXPECT_EQ(list.kind(), "CronTabList");
  EXPECT_EQ(list["items"][0]["kind"].as_string(), "CronTab");
  in(kTabs).remove("a");
  EXPECT_EQ(status_of([&] { in(kTabs).get("a"); }).message,
            "crontabs.stable.example.com \"a\" not found");
}

TEST_F(CustomResources, HaveTheMetadataOfAllObjects) {
  const Object owner = in(kConfigMaps).create(config_map("owner"));
  const std::string reference =
      fmt::format(R"("kind":"ConfigMap","name":"owner","apiVersion":"v1","uid":"{}")", owner.uid());
  const std::string body = fmt::format(
      R"({{"apiVersion":"stable.example.com/v1","kind":"CronTab","spec":{{"cronSpec":"1"}},
           "metadata":{{"name":"a","Name":"b","foo":{{"a":1}},"labels":{{"bare":null}},
                        "ownerReferences":[{{{},"zz":1}}]}}}})",
      reference);
  const auto answer =
      http(server_.port(), "POST", "/apis/stable.example.com/v1/namespaces/default/crontabs", body);
  EXPECT_EQ(answer.code, 201) << answer.body;
  const Object made = in(kTabs).get("a");
  EXPECT_FALSE(made["metadata"].contains("Name"));
  EXPECT_FALSE(made["metadata"].contains("foo"));
  EXPECT_EQ(made["metadata"]["labels"].to_json(), R"({"bare":""})");
  EXPECT_EQ(made["metadata"]["ownerReferences"].to_json(), "[{" + reference + "}]");
  const Object patched = in(kTabs).patch("a", rest::PatchType::kMerge,
                                         R"({"metadata":{"other":1,"labels":{"c":"d"}}})");
  EXPECT_FALSE(patched["metadata"].contains("other"));
  EXPECT_EQ(patched["metadata"]["labels"]["c"].as_string(), "d");
}

TEST_F(CustomResources, AllVersionsServeTheSameObjects) {
  auto watch = in(kBetaTabs).watch({});
  in(kTabs).create(tab("a"));
  const Object beta = in(kBetaTabs).get("a");
  EXPECT_EQ(beta.api_version(), "stable.example.com/v1beta1");
  const auto event = watch.next();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->object, beta);
  in(kBetaTabs).update(changed(beta, R"({"spec":{"cronSpec":"2"}})"));
  EXPECT_EQ(lookout::test::held(in(kTabs).get("a"))["spec"]["cronSpec"].as_string(), "2");
  EXPECT_EQ(status_of([&] { in(kTabs).create(tab("b", "", "v1beta1")); }).message,
            "the API version in the data (stable.example.com/v1beta1) does not match the expected "
            "API version (stable.example.com/v1)");
  EXPECT_EQ(http(server_.port(), "GET", "/apis/stable.example.com/v0/crontabs").code, 404);
}

TEST_F(CustomResources, AWatchEndsWithTheDefinition) {
  in(kTabs).create(tab("a"));
  rest::CallOptions patience;
  patience.timeout = std::chrono::seconds(20);
  auto watch = in(kTabs).watch({}, {}, patience);
  const auto added = watch.next();
  ASSERT_TRUE(added);
  EXPECT_EQ(added->type, api::EventType::kAdded);
  all(kDefinitions).remove("crontabs.stable.example.com");
  const auto deleted = watch.next();
  ASSERT_TRUE(deleted);
  EXPECT_EQ(deleted->type, api::EventType::kDeleted);
  EXPECT_FALSE(watch.next());
  EXPECT_EQ(http(server_.port(), "GET", "/apis/stable.example.com/v1/crontabs").code, 404);
}

// (Watches of all versions: they would continue with the old definition.)
TEST_F(CustomResources, WatchesEndWhenTheSpecOfTheDefinitionChanges) {
  rest::CallOptions patience;
  patience.timeout = std::chrono::seconds(20);
  auto beta = in(kBetaTabs).watch({}, {}, patience);
  auto stable = in(kTabs).watch({}, {}, patience);
  all(kDefinitions)
      .patch("crontabs.stable.example.com", rest::PatchType::kMerge,
             R"({"metadata":{"labels":{"a":"b"}}})");
  in(kTabs).create(tab("a"));
  for (auto* watch : {&beta, &stable}) {
    const auto added = watch->next();
    ASSERT_TRUE(added);
    EXPECT_EQ(added->object.name(), "a");
  }
  all(kDefinitions)
      .patch("crontabs.stable.example.com", rest::PatchType::kJson,
             R"([{"op":"replace","path":"/spec/versions/0/served","value":false}])");
  EXPECT_FALSE(beta.next());
  EXPECT_FALSE(stable.next());
}

TEST_F(CustomResources, FieldsOfTheDefinitionCanBeSelected) {
  in(kTabs).create(tab("a", R"("color":"red")"));
  in(kTabs).create(tab("b", R"("color":"blue")"));
  rest::ListOptions red;
  red.field_selector = "spec.color=red";
  EXPECT_EQ(in(kTabs).list(red).items.size(), 1u);
  EXPECT_EQ(status_of([&] { in(kBetaTabs).list(red); }).message,
            "field label not supported: spec.color");
}

TEST_F(CustomResources, CanBeScaled) {
  in(kTabs).create(tab("a", R"("replicas":3)"));
  const std::string path = "/apis/stable.example.com/v1/namespaces/default/crontabs/a/scale";
  EXPECT_EQ(
      lookout::test::held(Object::parse(http(server_.port(), "GET", path).body))["spec"]["replicas"]
          .as_int(),
      3);
  const auto answer = http(server_.port(), "PATCH", path, R"({"spec":{"replicas":4}})",
                           {{"Content-Type", "application/merge-patch+json"}});
  EXPECT_EQ(answer.code, 200) << answer.body;
  EXPECT_EQ(lookout::test::held(in(kTabs).get("a"))["spec"]["replicas"].as_int(), 4);
  EXPECT_EQ(http(server_.port(), "GET",
                 "/apis/stable.example.com/v1beta1/namespaces/default/crontabs/a/scale")
                .code,
            404);
}

TEST_F(CustomResources, AmbiguousFinalizersCauseWarnings) {
  const std::string path = "/apis/stable.example.com/v1/namespaces/default/crontabs";
  const auto warning = [](const HttpAnswer& answer) {
    EXPECT_LT(answer.code, 300) << answer.body;
    const auto found = answer.headers.find("warning");
    return found == answer.headers.end() ? "" : found->second;
  };
  const auto tab_with = [](const std::string& finalizers) {
    return R"({"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":"f",)"
           R"("finalizers":[)" +
           finalizers + R"(]},"spec":{"color":"red"}})";
  };
  EXPECT_THAT(warning(http(server_.port(), "POST", path, tab_with(R"("mine")"))),
              testing::HasSubstr("prefer a domain-qualified finalizer name to avoid"));
  const auto patch = [&](const std::string& finalizers) {
    return warning(http(server_.port(), "PATCH", path + "/f",
                        R"({"metadata":{"finalizers":[)" + finalizers + "]}}",
                        {{"Content-Type", "application/merge-patch+json"}}));
  };
  EXPECT_EQ(patch(R"("mine","example.com/good")"), "");
  EXPECT_THAT(patch(R"("mine","example.com")"),
              testing::HasSubstr("finalizer name including a path (/) to avoid"));
  EXPECT_EQ(patch(""), "");
}

TEST_F(CustomResources, WithoutANumberOfReplicasAreNotScaledDown) {
  in(kTabs).create(tab("a", R"("color":"red")"));
  const std::string path = "/apis/stable.example.com/v1/namespaces/default/crontabs/a/scale";
  const auto patch = [&](const std::string& body) {
    return http(server_.port(), "PATCH", path, body,
                {{"Content-Type", "application/merge-patch+json"}});
  };
  const HttpAnswer read = http(server_.port(), "GET", path);
  EXPECT_EQ(read.code, 500);
  EXPECT_THAT(read.body,
              testing::HasSubstr(R"(the spec replicas field \".spec.replicas\" does not exist)"));
  const HttpAnswer other = patch(R"({"metadata":{"resourceVersion":null}})");
  EXPECT_EQ(other.code, 400);
  EXPECT_THAT(other.body,
              testing::HasSubstr(R"(the spec replicas field \".spec.replicas\" cannot be empty)"));
  EXPECT_FALSE(lookout::test::held(in(kTabs).get("a"))["spec"]["replicas"].exists());
  EXPECT_EQ(patch(R"({"spec":{"replicas":2}})").code, 200);
  EXPECT_EQ(lookout::test::held(in(kTabs).get("a"))["spec"]["replicas"].as_int(), 2);
}

TEST_F(CustomResources, RejectionsMentionUncheckedRules) {
  http(server_.port(), "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
       kThingDefinition +
           std::string(
               R"("schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":)"
               R"({"type":"object","required":["a"],"properties":{"a":{"type":"integer",)"
               R"("minimum":1}},"x-kubernetes-validations":[{"rule":"self.a < 5"}]}}}}}]}})"));
  const auto causes = [&](const std::string& spec) {
    const HttpAnswer answer =
        http(server_.port(), "POST", "/apis/example.com/v1/namespaces/default/things",
             R"({"apiVersion":"example.com/v1","kind":"Thing","metadata":{"name":"t"},"spec":)" +
                 spec + "}");
    EXPECT_EQ(answer.code, 422) << answer.body;
    std::vector<std::string> out;
    const Object told = Object::parse(answer.body);
    for (const api::Value cause : told["details"]["causes"].elements()) {
      out.push_back(
          fmt::format("{}: {}", cause["field"].as_string(), cause["message"].as_string()));
    }
    return out;
  };
  EXPECT_THAT(causes("{}"),
              testing::ElementsAre("spec.a: Required value",
                                   "<nil>: Invalid value: null: some validation rules were not "
                                   "checked because the object was invalid; correct the existing "
                                   "errors to complete validation"));
  // An out-of-range value does not prevent them.
  EXPECT_THAT(causes(R"({"a":0})"), testing::ElementsAre(testing::StartsWith("spec.a: ")));
}

TEST_F(CustomResources, ReplicasMustBeNumbers) {
  const auto message = [&](const std::string& spec) {
    return status_of([&] { in(kTabs).create(tab("a", spec)); }).message;
  };
  const std::string begin = "CronTab.stable.example.com \"a\" is invalid: .spec.replicas: ";
  EXPECT_EQ(message(R"("replicas":-1)"),
            begin + "Invalid value: -1: should be a non-negative integer");
  EXPECT_EQ(message(R"("replicas":3000000000)"),
            begin + "Invalid value: 3000000000: should be less than or equal to 2147483647");
  EXPECT_EQ(message(R"("replicas":"x")"),
            begin +
                "Invalid value: 0: .spec.replicas accessor error: x is of the type string, "
                "expected int64");
}

/// Values that were valid before a change of the definition may stay, and must not block a
/// controller's status writes.
TEST_F(CustomResources, TheStatusDoesNotDependOnTheSpec) {
  in(kTabs).create(tab("a", R"("color":"red")"));
  all(kDefinitions)
      .patch("crontabs.stable.example.com", rest::PatchType::kJson,
             R"([{"op":"replace","path":"/spec/versions/1/schema/openAPIV3Schema/properties/spec/)"
             R"(properties/color/type","value":"integer"}])");
  const std::string path = "/apis/stable.example.com/v1/namespaces/default/crontabs/a";
  const auto patch = [&](const std::string& where, const char* body) {
    return http(server_.port(), "PATCH", where, body,
                {{"Content-Type", "application/merge-patch+json"}})
        .code;
  };
  EXPECT_EQ(patch(path, R"({"spec":{"color":"blue"}})"), 422);
  EXPECT_EQ(patch(path, R"({"spec":{"x":1}})"), 200);
  EXPECT_EQ(patch(path + "/status", R"({"status":{"replicas":2}})"), 200);
  EXPECT_EQ(patch(path + "/status", R"({"status":{"replicas":-2}})"), 422);
}

TEST_F(CustomResources, SupportOnlyJsonAndMergePatches) {
  in(kTabs).create(tab("a"));
  const Object patched = in(kTabs).patch("a", rest::PatchType::kMerge, R"({"spec":{"x":[1]}})");
  EXPECT_EQ(patched["spec"]["x"][0].as_int(), 1);
  EXPECT_EQ(status_of([&] { in(kTabs).patch("a", rest::PatchType::kStrategicMerge, "{}"); }).code,
            415);
}

TEST_F(CustomResources, InstancesMustHaveTheRightType) {
  EXPECT_EQ(
      status_of([&] {
        in(kTabs).create(from_json(
            R"({"apiVersion":"stable.example.com/v1","kind":"Other","metadata":{"name":"x"}})"));
      }).message,
      "CronTab.stable.example.com \"x\" is invalid: kind: Invalid value: \"Other\": must be "
      "CronTab");
  EXPECT_EQ(http(server_.port(), "POST", "/apis/stable.example.com/v1/namespaces/default/crontabs",
                 R"({"metadata":{"name":"x"}})")
                .code,
            400);
  EXPECT_EQ(status_of([&] { in(kTabs).create(tab("Big")); }).code, 422);
}

TEST_F(CustomResources, ADeletedDefinitionDeletesItsInstances) {
  in(kTabs).create(tab("a"));
  in(kTabs).create(from_json(
      R"({"apiVersion":"stable.example.com/v1","kind":"CronTab",
          "metadata":{"name":"held","finalizers":["example.com/a"]}})"));
  auto watch = in(kTabs).watch({});
  const Object deleting = all(kDefinitions).remove("crontabs.stable.example.com");
  EXPECT_EQ(deleting["metadata"]["finalizers"].to_json(),
            R"(["customresourcecleanup.apiextensions.k8s.io"])");
  EXPECT_EQ(status_of([&] { in(kTabs).create(tab("new")); }).code, 403);
  EXPECT_TRUE(eventually([&] { return in(kTabs).list().items.size() == 1; }));
  in(kTabs).patch("held", rest::PatchType::kMerge, R"({"metadata":{"finalizers":null}})");
  EXPECT_TRUE(eventually([&] {
    return http(server_.port(), "GET",
                "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
                "crontabs.stable.example.com")
               .code == 404;
  }));
  EXPECT_EQ(http(server_.port(), "GET", "/apis/stable.example.com/v1/crontabs").code, 404);
  // Watchers receive an event for every instance.
  int deleted = 0;
  while (deleted < 2) {
    const auto event = watch.next();
    ASSERT_TRUE(event);
    if (event->type == api::EventType::kDeleted) ++deleted;
  }
  // A recreated definition starts without instances.
  all(kDefinitions).create(from_json(kDefinition));
  EXPECT_TRUE(in(kTabs).list().items.empty());
}

TEST_F(CustomResources, ADefinitionsStatusMayBeAppliedWithLabels) {
  const HttpAnswer answer =
      http(server_.port(), "PATCH",
           "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/crontabs.stable.example.com/"
           "status?fieldManager=m",
           R"({"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition",)"
           R"("metadata":{"name":"crontabs.stable.example.com","labels":{"a":"b"}}})",
           {{"Content-Type", "application/apply-patch+yaml"}});
  EXPECT_EQ(answer.code, 200) << answer.body;
  const Object applied = Object::parse(answer.body);
  EXPECT_EQ(applied["metadata"]["labels"]["a"].as_string(), "b");
  EXPECT_THAT(applied["metadata"]["managedFields"].to_json(),
              testing::HasSubstr(R"("manager":"m","operation":"Apply")"));
}

TEST_F(CustomResources, ATerminatingDefinitionAcceptsNoInstances) {
  in(kTabs).create(changed(tab("kept", R"("color":"red")"),
                           R"({"metadata":{"finalizers":["example.com/wait"]}})"));
  const std::string path = "/apis/stable.example.com/v1/namespaces/default/crontabs";
  const Object doomed = all(kDefinitions).remove("crontabs.stable.example.com");
  EXPECT_TRUE(doomed["metadata"]["deletionTimestamp"].exists());
  EXPECT_FALSE(doomed["metadata"]["deletionGracePeriodSeconds"].exists());
  const auto progress = [&] {
    const Object definition = all(kDefinitions).get("crontabs.stable.example.com");
    for (const api::Value one : definition["status"]["conditions"].elements()) {
      if (one["type"].as_string() == "Terminating") return std::string(one["reason"].as_string());
    }
    return std::string();
  };
  EXPECT_TRUE(lookout::test::eventually([&] { return progress() == "InstanceDeletionInProgress"; }))
      << progress();
  const std::string body =
      R"({"apiVersion":"stable.example.com/v1","kind":"CronTab","metadata":{"name":"n"}})";
  const HttpAnswer refused = http(server_.port(), "POST", path, body);
  EXPECT_EQ(refused.code, 403);
  EXPECT_THAT(refused.body,
              testing::HasSubstr(R"(crontabs.stable.example.com \"n\" is forbidden: create not )"
                                 "allowed while custom resource definition is terminating"));
  EXPECT_EQ(http(server_.port(), "PATCH", path + "/n?fieldManager=m", body,
                 {{"Content-Type", "application/apply-patch+yaml"}})
                .code,
            403);
  EXPECT_THAT(http(server_.port(), "GET", "/apis/stable.example.com/v1").body,
              testing::HasSubstr(R"("verbs":["delete","deletecollection","get","list","watch"])"));
  EXPECT_EQ(http(server_.port(), "PATCH", path + "/kept", R"({"metadata":{"finalizers":null}})",
                 {{"Content-Type", "application/merge-patch+json"}})
                .code,
            200);
}

TEST_F(CustomResources, AChangedDefinitionIsServedAtOnce) {
  in(kTabs).create(tab("a"));
  const Object present = all(kDefinitions).get("crontabs.stable.example.com");
  rest::PatchOptions options;
  all(kDefinitions)
      .patch("crontabs.stable.example.com", rest::PatchType::kJson,
             R"([{"op":"replace","path":"/spec/versions/0/served","value":false},
                              {"op":"replace","path":"/spec/versions/2/served","value":true}])");
  EXPECT_EQ(http(server_.port(), "GET", "/apis/stable.example.com/v1beta1/crontabs").code, 404);
  EXPECT_EQ(http(server_.port(), "GET", "/apis/stable.example.com/v0/crontabs").code, 200);
}

TEST_F(CustomResources, DefinitionsAreValidated) {
  const auto message = [&](const std::string& patch, const std::string& name) {
    rapidjson::Document document = changed(from_json(kDefinition), patch).to_document();
    return status_of([&] {
             all(kDefinitions)
                 .create(
                     changed(Object::from(document), R"({"metadata":{"name":")" + name + R"("}})"));
           })
        .message;
  };
  EXPECT_EQ(message("{}", "wrong.example.com"),
            "CustomResourceDefinition.apiextensions.k8s.io \"wrong.example.com\" is invalid: "
            "metadata.name: Invalid value: \"wrong.example.com\": must be "
            "spec.names.plural+\".\"+spec.group");
  EXPECT_EQ(
      message(R"({"spec":{"scope":"Everywhere","names":{"plural":"others"}}})",
              "others.stable.example.com"),
      "CustomResourceDefinition.apiextensions.k8s.io \"others.stable.example.com\" is invalid: "
      "spec.scope: Unsupported value: \"Everywhere\": supported values: \"Cluster\", "
      "\"Namespaced\"");
}

TEST_F(CustomResources, ClientsOfADeprecatedVersionAreWarned) {
  const auto warning = [&](const std::string& path) {
    const auto answer = http(server_.port(), "GET", "/apis/stable.example.com/" + path);
    const auto found = answer.headers.find("warning");
    return found == answer.headers.end() ? "" : found->second;
  };
  EXPECT_EQ(warning("v1beta1/crontabs"), "");
  const auto change = [&](const std::string& patch) {
    all(kDefinitions)
        .patch("crontabs.stable.example.com", rest::PatchType::kJson, "[" + patch + "]");
  };
  change(R"({"op":"add","path":"/spec/versions/0/deprecated","value":true})");
  const std::string text =
      "299 - \"stable.example.com/v1beta1 CronTab is deprecated; use stable.example.com/v1 "
      "CronTab\"";
  EXPECT_EQ(warning("v1beta1/crontabs"), text);
  EXPECT_EQ(warning("v1beta1/namespaces/default/crontabs/none"), text) << "a 404, too";
  EXPECT_EQ(warning("v1/crontabs"), "");

  change(R"({"op":"add","path":"/spec/versions/1/deprecated","value":true})");
  EXPECT_EQ(warning("v1beta1/crontabs"),
            R"(299 - "stable.example.com/v1beta1 CronTab is deprecated")")
      << "there is no better version";
  change(R"({"op":"add","path":"/spec/versions/0/deprecationWarning","value":"move on"})");
  EXPECT_EQ(warning("v1beta1/crontabs"), R"(299 - "move on")");
}

TEST_F(CustomResources, AWarningBelongsToADeprecatedVersionAndIsPrintable) {
  const auto message = [&](const std::string& version) {
    return status_of([&] {
             all(kDefinitions)
                 .patch("crontabs.stable.example.com", rest::PatchType::kJson,
                        R"([{"op":"add","path":"/spec/versions/0/deprecationWarning","value":)" +
                            version);
           })
        .message;
  };
  constexpr const char* kField = "spec.versions[0].deprecationWarning: Invalid value: ";
  EXPECT_THAT(message(R"("old"}])"),
              testing::HasSubstr(kField +
                                 std::string(R"("old": can only be set for deprecated versions)")));
  const std::string deprecated =
      R"(},{"op":"add","path":"/spec/versions/0/deprecated","value":true}])";
  EXPECT_THAT(message(R"("")" + deprecated), testing::HasSubstr("must not be an empty string"));
  EXPECT_THAT(message(R"("a\nb")" + deprecated),
              testing::HasSubstr("non-printable character found at index 1"));
  EXPECT_THAT(message("\"" + std::string(257, 'x') + "\"" + deprecated),
              testing::HasSubstr("must be <= 256 characters long"));
}

TEST_F(CustomResources, MayBeClusterScoped) {
  const api::Resource things{"stable.example.com", "v1", "Thing", "things", false};
  all(kDefinitions)
      .create(from_json(
          R"({"metadata":{"name":"things.stable.example.com"},
          "spec":{"group":"stable.example.com","scope":"Cluster",
            "names":{"plural":"things","kind":"Thing"},
            "versions":[{"name":"v1","served":true,"storage":true,
                         "schema":{"openAPIV3Schema":{"type":"object"}}}]}})"));
  const Object thing = all(things).create(from_json(
      R"({"apiVersion":"stable.example.com/v1","kind":"Thing","metadata":{"name":"t"}})"));
  EXPECT_EQ(thing.ns(), "");
  EXPECT_EQ(
      http(server_.port(), "GET", "/apis/stable.example.com/v1/namespaces/default/things/t").code,
      404);
}

TEST_F(CustomResources, HaveTheirOwnPaths) {
  const api::Resource things{"stable.example.com", "v1beta1", "CronTab", "crontabs", true};
  const std::string all_of_them = "/apis/stable.example.com/v1beta1/crontabs";
  const std::string some = "/apis/stable.example.com/v1beta1/namespaces/default/crontabs";
  in(things).create(tab("a", R"("cronSpec":"* * *")", "v1beta1"));
  const auto answer = [&](const char* method, const std::string& path, const char* type) {
    const HttpAnswer found = http(server_.port(), method, path, "{}", {{"Content-Type", type}});
    if (!found.body.starts_with('{')) return std::to_string(found.code) + " " + found.body;
    return std::to_string(found.code) + " " +
           std::string(lookout::test::held(Object::parse(found.body))["message"].as_string());
  };
  constexpr const char* kJson = "application/json";
  constexpr const char* kMerge = "application/merge-patch+json";
  // Subresources that a version does not have.
  for (const char* part : {"/status", "/scale", "/log"}) {
    EXPECT_EQ(answer("PATCH", some + "/a" + part, kMerge),
              "404 crontabs.stable.example.com \"a\" not found");
  }
  // Without the namespace there is nothing to write.
  EXPECT_EQ(answer("GET", all_of_them + "/a", kJson), "404 404 page not found\n");
  EXPECT_EQ(answer("POST", all_of_them, kJson), "404 404 page not found\n");
  EXPECT_EQ(answer("DELETE", all_of_them, kJson), "404 404 page not found\n");
  EXPECT_EQ(answer("PUT", some, kJson), "400 name must be provided");
  EXPECT_EQ(answer("PATCH", some, kMerge), "400 name must be provided");
  EXPECT_TRUE(answer("PATCH", some, kJson).starts_with("415 the body of the request was in an"));
  EXPECT_EQ(answer("OPTIONS", some, kJson),
            "405  is not supported on resources of kind \"crontabs.stable.example.com\"");
  EXPECT_EQ(
      answer("DELETE", "/apis/stable.example.com/v1/namespaces/default/crontabs/a/status", kJson),
      "405 delete is not supported on resources of kind \"crontabs.stable.example.com\"");
  for (const std::string& path : {some, some + "/a"}) {
    HttpClient client(server_.port());
    client.send("HEAD " + path + " HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    EXPECT_TRUE(client.read_to_end().starts_with("HTTP/1.1 200 OK\r\n")) << path;
  }
}

TEST_F(CustomResources, AreServedInTheirOwnEncodings) {
  const std::string path = "/apis/stable.example.com/v1/namespaces/default/crontabs";
  const auto type = [&](const char* method, const std::string& target, const char* accepted,
                        int code, const std::string& body = {}) {
    const HttpAnswer answer = http(server_.port(), method, target, body,
                                   {{"Accept", accepted}, {"Content-Type", "application/json"}});
    EXPECT_EQ(answer.code, code) << method << " " << answer.body;
    return answer.headers.at("content-type");
  };
  constexpr const char* kBinary = "application/vnd.kubernetes.protobuf";
  constexpr const char* kEither = "application/vnd.kubernetes.protobuf, application/json";
  EXPECT_EQ(type("POST", path, kBinary, 406, tab("a").to_json()), kBinary);
  EXPECT_EQ(type("POST", path, kEither, 201, tab("a").to_json()), "application/json");
  EXPECT_EQ(type("GET", path + "/a", "application/*", 200), "application/json");
  const HttpAnswer none = http(server_.port(), "GET", path, {}, {{"Accept", "image/png"}});
  EXPECT_EQ(none.code, 406);
  EXPECT_EQ(lookout::test::held(Object::parse(none.body))["message"].as_string(),
            "only the following media types are accepted: application/json, application/yaml, "
            "application/vnd.kubernetes.protobuf");
  EXPECT_EQ(type("DELETE", path + "/a", kEither, 200), "application/json");
}

TEST_F(CustomResources, CannotChangeTheirKind) {
  in(kTabs).create(tab("a"));
  const api::Status status =
      status_of([&] { in(kTabs).patch("a", rest::PatchType::kMerge, R"({"kind":"Other"})"); });
  EXPECT_EQ(status.code, 422);
  EXPECT_EQ(status.message,
            "CronTab.stable.example.com \"a\" is invalid: kind: Invalid value: \"Other\": must be "
            "CronTab");
}

}  // namespace
}  // namespace lookout::apiserver
