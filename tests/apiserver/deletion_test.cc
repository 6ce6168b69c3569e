// Deleting objects, namespaces and definitions.
#include <gtest/gtest.h>

#include <atomic>
#include <boost/asio/this_coro.hpp>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "lookout/base/async_event.h"
#include "lookout/base/event_loop.h"
#include "tests/apiserver/client_fixture.h"
#include "tests/apiserver/http_client.h"
#include "tests/apiserver/wrapped_backend.h"
#include "tests/support/held.h"

namespace lookout::apiserver {
namespace {

/// The rest of a definition.
constexpr const char* kAnySchema = R"("schema":{"openAPIV3Schema":{"type":"object"}}}]}})";

class Deletion : public ClientTest {
 protected:
  static bool is_gone(const std::function<void()>& get) {
    try {
      get();
    } catch (const api::StatusError& e) {
      return api::is_not_found(e);
    }
    return false;
  }
  bool is_gone(const api::Resource& resource, const std::string& name,
               const std::string& ns = "default") const {
    return is_gone([&] { client_.resource(resource, resource.namespaced ? ns : "").get(name); });
  }
  /// "True Reason: message" of a namespace; empty if it has no such condition.
  std::string condition(const std::string& ns, std::string_view type) const {
    const Object found = all(kNamespaces).get(ns);
    for (const api::Value one : found["status"]["conditions"].elements()) {
      if (one["type"].as_string() != type) continue;
      return std::string(one["status"].as_string())
          .append(" ")
          .append(one["reason"].as_string())
          .append(": ")
          .append(one["message"].as_string());
    }
    return {};
  }
};

TEST_F(Deletion, ReturnsAStatusThatNamesTheObject) {
  const Object created = in(kConfigMaps).create(config_map("c"));
  const Object answer = in(kConfigMaps).remove("c");
  EXPECT_EQ(answer,
            from_json(R"({"kind":"Status","apiVersion":"v1","metadata":{},"status":"Success",
                             "details":{"name":"c","kind":"configmaps","uid":")" +
                      std::string(created.uid()) + R"("}})"));
  EXPECT_TRUE(is_gone(kConfigMaps, "c"));
  EXPECT_EQ(status_of([&] { in(kConfigMaps).remove("c"); }).code, 404);
}

TEST_F(Deletion, OfAPodReturnsThePod) {
  pods().create(pod("p"));
  EXPECT_EQ(pods().remove("p").kind(), "Pod");
  EXPECT_TRUE(is_gone(kPods, "p"));
}

TEST_F(Deletion, OfDeviceClassesReturnsTheObject) {
  const auto remove = [&](const std::string& path, const std::string& object) {
    EXPECT_EQ(http(server_.port(), "POST", path, object).code, 201) << path;
    return from_json(http(server_.port(), "DELETE", path + "/a").body).kind();
  };
  const std::string classes = "/apis/resource.k8s.io/v1/deviceclasses";
  EXPECT_EQ(remove(classes, R"({"metadata":{"name":"a"},"spec":{}})"), "DeviceClass");
  const std::string ns = "/apis/resource.k8s.io/v1/namespaces/default/";
  EXPECT_EQ(remove(ns + "resourceclaims", R"({"metadata":{"name":"a"},"spec":{}})"),
            "ResourceClaim");
  EXPECT_EQ(
      remove(ns + "resourceclaimtemplates", R"({"metadata":{"name":"a"},"spec":{"spec":{}}})"),
      "ResourceClaimTemplate");
  EXPECT_EQ(remove("/apis/resource.k8s.io/v1/resourceslices",
                   R"({"metadata":{"name":"a"},"spec":{"driver":"d.example.com","allNodes":true,
                       "pool":{"name":"p","resourceSliceCount":1}}})"),
            "ResourceSlice");
  EXPECT_EQ(remove("/apis/storage.k8s.io/v1/volumeattributesclasses",
                   R"({"metadata":{"name":"a"},"driverName":"d","parameters":{"a":"b"}})"),
            "VolumeAttributesClass");
}

TEST_F(Deletion, ChecksPreconditions) {
  const Object created = in(kConfigMaps).create(config_map("c"));
  rest::DeleteOptions other;
  other.precondition_uid = "another";
  const auto status = status_of([&] { in(kConfigMaps).remove("c", other); });
  EXPECT_EQ(status.code, 409);
  EXPECT_EQ(
      status.message,
      "Operation cannot be fulfilled on ConfigMap \"c\": the UID in the precondition (another) "
      "does not match the UID in record (" +
          std::string(created.uid()) + "). The object might have been deleted and then recreated");
  rest::DeleteOptions right;
  right.precondition_uid = std::string(created.uid());
  right.precondition_resource_version = std::string(created.resource_version());
  in(kConfigMaps).remove("c", right);
  EXPECT_TRUE(is_gone(kConfigMaps, "c"));
}

TEST_F(Deletion, OfNamespacesAndDefinitionsHasOtherMessagesForPreconditions) {
  const std::string prefix = "Operation cannot be fulfilled on ";
  const auto refused_removal = [&](const api::Resource& resource, const std::string& name,
                                   const rest::DeleteOptions& options) {
    return status_of([&] { all(resource).remove(name, options); }).message;
  };
  const Object shop = all(kNamespaces).create(from_json(R"({"metadata":{"name":"shop"}})"));
  EXPECT_EQ(refused_removal(kNamespaces, "shop", {.precondition_resource_version = "1"}),
            prefix +
                "namespaces \"shop\": Precondition failed: ResourceVersion in precondition: 1, "
                "ResourceVersion in object meta: " +
                std::string(shop.resource_version()));
  const Object things =
      all(kDefinitions).create(from_json(std::string(kThingDefinition) + kAnySchema));
  EXPECT_EQ(refused_removal(kDefinitions, "things.example.com", {.precondition_uid = "another"}),
            prefix +
                "customresourcedefinitions.apiextensions.k8s.io \"things.example.com\": "
                "Precondition failed: UID in precondition: another, UID in object meta: " +
                std::string(things.uid()));
}

TEST_F(Deletion, WaitsForFinalizers) {
  const Object created =
      in(kConfigMaps)
          .create(from_json(
              R"({"metadata":{"name":"c","finalizers":["example.com/a","example.com/b"]}})"));
  const Object marked = in(kConfigMaps).remove("c");
  EXPECT_TRUE(marked["metadata"].contains("deletionTimestamp"));
  EXPECT_EQ(marked["metadata"]["deletionGracePeriodSeconds"].as_int(-1), 0);
  // A second deletion changes nothing.
  EXPECT_EQ(in(kConfigMaps).remove("c"), marked);
  EXPECT_EQ(in(kConfigMaps).get("c"), marked);
  // The object may be changed, but no finalizers can be added.
  const Object one_left =
      in(kConfigMaps).update(changed(marked, R"({"metadata":{"finalizers":["example.com/b"]}})"));
  EXPECT_EQ(
      status_of([&] {
        in(kConfigMaps)
            .update(changed(one_left,
                            R"({"metadata":{"finalizers":["example.com/b","example.com/c"]}})"));
      }).message,
      "ConfigMap \"c\" is invalid: metadata.finalizers: Forbidden: no new finalizers can be "
      "added if the object is being deleted, found new finalizers "
      "[]string{\"example.com/c\"}");
  // An update does not cancel the deletion.
  const Object still =
      in(kConfigMaps)
          .update(
              changed(one_left, R"({"metadata":{"deletionTimestamp":null,"labels":{"a":"b"}}})"));
  EXPECT_TRUE(still["metadata"].contains("deletionTimestamp"));
  in(kConfigMaps).update(changed(still, R"({"metadata":{"finalizers":null}})"));
  EXPECT_TRUE(is_gone(kConfigMaps, "c"));
}

TEST_F(Deletion, ATerminatingObjectBlocksItsName) {
  in(kConfigMaps).create(from_json(R"({"metadata":{"name":"c","finalizers":["example.com/a"]}})"));
  in(kConfigMaps).remove("c");
  EXPECT_EQ(status_of([&] { in(kConfigMaps).create(config_map("c")); }).message,
            "object is being deleted: configmaps \"c\" already exists");
}

TEST_F(Deletion, APodOnANodeGetsItsGracePeriod) {
  pods().create(pod("p", R"(,"nodeName":"n","terminationGracePeriodSeconds":3600)"));
  const Object marked = pods().remove("p");
  EXPECT_EQ(marked["metadata"]["deletionGracePeriodSeconds"].as_int(), 3600);
  EXPECT_EQ(marked["metadata"]["generation"].as_int(), 2);
  EXPECT_FALSE(is_gone(kPods, "p"));
  // The grace period can only be shortened.
  rest::DeleteOptions longer;
  longer.grace_period_seconds = 7200;
  pods().remove("p", longer);
  EXPECT_EQ(lookout::test::held(pods().get("p"))["metadata"]["deletionGracePeriodSeconds"].as_int(),
            3600);
  rest::DeleteOptions shorter;
  shorter.grace_period_seconds = 60;
  EXPECT_EQ(
      lookout::test::held(pods().remove("p", shorter))["metadata"]["deletionGracePeriodSeconds"]
          .as_int(),
      60);
  rest::DeleteOptions now;
  now.grace_period_seconds = 0;
  pods().remove("p", now);
  EXPECT_TRUE(is_gone(kPods, "p"));
}

TEST_F(Deletion, ARunningGracePeriodCanOnlyBeShortened) {
  pods().create(pod("p", R"(,"nodeName":"n","terminationGracePeriodSeconds":3600)"));
  pods().remove("p");
  const std::string path = "/api/v1/namespaces/default/pods/p";
  const auto remove = [&](const std::string& parameters) {
    return Object::parse(http(server_.port(), "DELETE", path + parameters).body);
  };
  // The propagation policy can no longer change.
  const Object later = remove("?propagationPolicy=Orphan");
  EXPECT_FALSE(later["metadata"]["finalizers"].exists()) << later.to_json();
  EXPECT_EQ(later["metadata"]["deletionGracePeriodSeconds"].as_int(), 3600);
  const auto grace = [&](const std::string& seconds) {
    const Object pod = remove("?dryRun=All&gracePeriodSeconds=" + seconds);
    return pod["metadata"]["deletionGracePeriodSeconds"].as_int();
  };
  // A period that has already ended becomes one second, and so does a negative one.
  EXPECT_TRUE(eventually([&] { return grace("2") == 1; }));
  EXPECT_EQ(grace("-5"), 1);
  EXPECT_EQ(grace("600"), 600);
}

TEST_F(Deletion, APodIsDeletedAtTheEndOfItsGracePeriod) {
  pods().create(pod("p", R"(,"nodeName":"n","terminationGracePeriodSeconds":1)"));
  const auto begin = std::chrono::steady_clock::now();
  pods().remove("p");
  EXPECT_TRUE(eventually([&] { return is_gone(kPods, "p"); }));
  EXPECT_GE(std::chrono::steady_clock::now() - begin, std::chrono::seconds(1));
}

TEST_F(Deletion, AnEndedPodIsDeletedAtOnce) {
  const Object created = pods().create(pod("p", R"(,"nodeName":"n")"));
  pods().update_status(changed(created, R"({"status":{"phase":"Succeeded"}})"));
  pods().remove("p");
  EXPECT_TRUE(is_gone(kPods, "p"));
}

TEST_F(Deletion, OfACollectionDeletesSelectedObjects) {
  for (const char* name : {"a", "b", "c"}) {
    in(kConfigMaps)
        .create(from_json(R"({"metadata":{"name":")" + std::string(name) +
                          R"(","labels":{"app":")" + (name[0] == 'c' ? "y" : "x") + R"("}}})"));
  }
  rest::ListOptions selected;
  selected.label_selector = "app=x";
  in(kConfigMaps).remove_collection({}, selected);
  const auto left = in(kConfigMaps).list();
  ASSERT_EQ(left.items.size(), 1u);
  EXPECT_EQ(left.items[0].name(), "c");
}

TEST_F(Deletion, OfACollectionReturnsTheList) {
  in(kConfigMaps).create(config_map("a"));
  const auto answer = http(server_.port(), "DELETE", "/api/v1/namespaces/default/configmaps");
  EXPECT_EQ(answer.code, 200);
  const Object list = Object::parse(answer.body);
  EXPECT_EQ(list.kind(), "ConfigMapList");
  EXPECT_EQ(list["items"][0]["metadata"]["name"].as_string(), "a");
}

TEST_F(Deletion, OfACollectionDeletesOnePageWithALimit) {
  for (const char* name : {"a", "b", "c", "d", "e"}) in(kConfigMaps).create(config_map(name));
  const std::string path = "/api/v1/namespaces/default/configmaps?limit=2";
  const auto names = [](const Object& list) {
    std::string out;
    for (const api::Value item : list["items"].elements())
      out.append(item["metadata"]["name"].as_string());
    return out;
  };
  const auto left = [&] {
    std::string out;
    for (const Object& map : in(kConfigMaps).list().items) out.append(map.name());
    return out;
  };
  const Object first = Object::parse(http(server_.port(), "DELETE", path).body);
  EXPECT_EQ(names(first), "ab");
  EXPECT_EQ(first["metadata"]["remainingItemCount"].as_int(), 3);
  EXPECT_EQ(left(), "cde");
  const std::string next(first["metadata"]["continue"].as_string());
  ASSERT_FALSE(next.empty());
  const Object second =
      Object::parse(http(server_.port(), "DELETE", path + "&continue=" + next).body);
  EXPECT_EQ(names(second), "cd");
  EXPECT_EQ(left(), "e");
  EXPECT_EQ(http(server_.port(), "DELETE", path + "&continue=nonsense").code, 400);
  EXPECT_EQ(left(), "e");
}

TEST_F(Deletion, EmptiesNamespacesFirst) {
  all(kNamespaces).create(from_json(R"({"metadata":{"name":"shop"}})"));
  for (int i = 0; i < 20; ++i) {
    const std::string name = "x" + std::to_string(i);
    in(kConfigMaps, "shop").create(config_map(name));
    pods("shop").create(pod(name));
  }
  in(kConfigMaps, "shop")
      .create(from_json(R"({"metadata":{"name":"held","finalizers":["example.com/a"]}})"));
  const Object terminating = all(kNamespaces).remove("shop");
  EXPECT_EQ(terminating["status"]["phase"].as_string(), "Terminating");
  EXPECT_TRUE(terminating["metadata"].contains("deletionTimestamp"));
  // No new objects can be created in it.
  const auto refused = status_of([&] { in(kConfigMaps, "shop").create(config_map("new")); });
  EXPECT_EQ(refused.code, 403);
  EXPECT_EQ(
      refused.message,
      "configmaps \"new\" is forbidden: unable to create new content in namespace shop because "
      "it is being terminated");
  ASSERT_EQ(refused.causes.size(), 1u);
  EXPECT_EQ(refused.causes[0].reason, "NamespaceTerminating");
  // The namespace waits for the last object.
  EXPECT_TRUE(eventually([&] {
    return in(kConfigMaps, "shop").list().items.size() == 1 && pods("shop").list().items.empty();
  }));
  EXPECT_FALSE(is_gone(kNamespaces, "shop"));
  // The namespace's conditions report the remaining content.
  EXPECT_TRUE(eventually([&] { return condition("shop", "NamespaceContentRemaining") != ""; }));
  EXPECT_EQ(condition("shop", "NamespaceDeletionDiscoveryFailure"),
            "False ResourcesDiscovered: All resources successfully discovered");
  EXPECT_EQ(condition("shop", "NamespaceDeletionGroupVersionParsingFailure"),
            "False ParsedGroupVersions: All legacy kube types successfully parsed");
  EXPECT_EQ(condition("shop", "NamespaceDeletionContentFailure"),
            "False ContentDeleted: All content successfully deleted, may be waiting on "
            "finalization");
  EXPECT_EQ(condition("shop", "NamespaceContentRemaining"),
            "True SomeResourcesRemain: Some resources are remaining: configmaps. has 1 resource "
            "instances");
  EXPECT_EQ(condition("shop", "NamespaceFinalizersRemaining"),
            "True SomeFinalizersRemain: Some content in the namespace has finalizers remaining: "
            "example.com/a in 1 resource instances");
  in(kConfigMaps, "shop")
      .patch("held", rest::PatchType::kMerge, R"({"metadata":{"finalizers":null}})");
  EXPECT_TRUE(eventually([&] { return is_gone(kNamespaces, "shop"); }));
}

TEST_F(Deletion, DeletesPodsOfNamespaceFirst) {
  all(kNamespaces).create(from_json(R"({"metadata":{"name":"shop"}})"));
  in(kConfigMaps, "shop").create(config_map("settings"));
  pods("shop").create(changed(pod("p"), R"({"metadata":{"finalizers":["example.com/a"]}})"));
  all(kNamespaces).remove("shop");
  EXPECT_TRUE(
      eventually([&] { return condition("shop", "NamespaceDeletionContentFailure") != ""; }));
  EXPECT_TRUE(lookout::test::held(pods("shop").get("p"))["metadata"].contains("deletionTimestamp"));
  EXPECT_EQ(in(kConfigMaps, "shop").list().items.size(), 1u);
  EXPECT_EQ(condition("shop", "NamespaceContentRemaining"),
            "False ContentRemoved: All content successfully removed");
  pods("shop").patch("p", rest::PatchType::kMerge, R"({"metadata":{"finalizers":null}})");
  EXPECT_TRUE(eventually([&] { return is_gone(kNamespaces, "shop"); }));
}

TEST_F(Deletion, OfADefinitionDeletesUnservedInstances) {
  const std::string definition = std::string(kThingDefinition) + kAnySchema;
  all(kDefinitions).create(from_json(definition));
  in(kThings).create(
      from_json(R"({"kind":"Thing","apiVersion":"example.com/v1","metadata":{"name":"t"}})"));
  all(kDefinitions)
      .patch("things.example.com", rest::PatchType::kJson,
             R"([{"op":"replace","path":"/spec/versions/0/served","value":false}])");
  all(kDefinitions).remove("things.example.com");
  EXPECT_TRUE(eventually([&] { return is_gone(kDefinitions, "things.example.com"); }));
  all(kDefinitions).create(from_json(definition));
  EXPECT_TRUE(in(kThings).list().items.empty());
}

TEST_F(Deletion, SystemNamespacesCannotBeDeleted) {
  EXPECT_EQ(status_of([&] { all(kNamespaces).remove("default"); }).message,
            "namespaces \"default\" is forbidden: this namespace may not be deleted");
}

TEST_F(Deletion, ADryRunChangesNothing) {
  const Object created = pods().create(pod("p", R"(,"nodeName":"n")"));
  rest::DeleteOptions dry_run;
  dry_run.dry_run = true;
  pods().remove("p", dry_run);
  EXPECT_EQ(pods().get("p"), created);
  // The response shows the result.
  const Object shop = all(kNamespaces).create(from_json(R"({"metadata":{"name":"shop"}})"));
  EXPECT_EQ(
      lookout::test::held(all(kNamespaces).remove("shop", dry_run))["status"]["phase"].as_string(),
      "Terminating");
  EXPECT_EQ(all(kNamespaces).get("shop"), shop);
  all(kDefinitions).create(from_json(std::string(kThingDefinition) + kAnySchema));
  const Object things = all(kDefinitions).get("things.example.com");
  EXPECT_TRUE(
      lookout::test::held(all(kDefinitions).remove("things.example.com", dry_run))["metadata"]
          .contains("deletionTimestamp"));
  EXPECT_EQ(all(kDefinitions).get("things.example.com"), things);
}

TEST_F(Deletion, InvalidOptionsDeleteNothing) {
  pods().create(pod("p"));
  for (const char* body :
       {"{", R"({"kind":"Pod","apiVersion":"v1"})", R"({"gracePeriodSeconds":"5"})",
        R"({"dryRun":"All"})", R"({"dryRun":[1]})", R"({"preconditions":"x"})",
        R"({"preconditions":{"uid":3}})", R"({"preconditions":{"resourceVersion":3}})",
        R"({"orphanDependents":"yes"})", R"({"propagationPolicy":3})"}) {
    const auto answer = http(server_.port(), "DELETE", "/api/v1/namespaces/default/pods/p", body,
                             {{"Content-Type", "application/json"}});
    EXPECT_EQ(answer.code, 400) << body << answer.body;
  }
  EXPECT_EQ(pods().get("p").name(), "p");
}

TEST_F(Deletion, ANamespaceRejectsInvalidFinalizers) {
  all(kNamespaces).create(from_json(R"({"metadata":{"name":"n"}})"));
  const auto answer = http(server_.port(), "PUT", "/api/v1/namespaces/n/finalize",
                           R"({"metadata":{"name":"n"},"spec":{"finalizers":["x y"]}})");
  EXPECT_EQ(answer.code, 422) << answer.body;
  const Object status = Object::parse(answer.body);
  EXPECT_EQ(status["details"]["causes"][0]["field"].as_string(), "spec.finalizers[0]");
  EXPECT_EQ(status["details"]["causes"][1]["message"].as_string(),
            "Invalid value: \"x y\": name is neither a standard finalizer name nor is it fully "
            "qualified");
}

TEST_F(Deletion, PoliciesAreAccepted) {
  for (const auto policy : {rest::PropagationPolicy::kOrphan, rest::PropagationPolicy::kBackground,
                            rest::PropagationPolicy::kForeground}) {
    in(kConfigMaps).create(config_map("c"));
    rest::DeleteOptions options;
    options.propagation_policy = policy;
    in(kConfigMaps).remove("c", options);
    // The deletion is asynchronous if other objects must be checked first.
    EXPECT_TRUE(eventually([&] { return is_gone(kConfigMaps, "c"); }));
  }
  in(kConfigMaps).create(config_map("c"));
  const auto answer = http(server_.port(), "DELETE",
                           "/api/v1/namespaces/default/configmaps/c?propagationPolicy=Never");
  EXPECT_EQ(answer.code, 422);
}

TEST_F(Deletion, RejectsContradictingPolicies) {
  in(kConfigMaps).create(config_map("c"));
  const std::string path = "/api/v1/namespaces/default/configmaps/c";
  const HttpAnswer answers[] = {
      http(server_.port(), "DELETE", path + "?orphanDependents=true&propagationPolicy=Orphan"),
      http(server_.port(), "DELETE", path,
           R"({"orphanDependents":true,"propagationPolicy":"Orphan"})", kJsonBody)};
  for (const HttpAnswer& answer : answers) {
    EXPECT_EQ(answer.code, 422) << answer.body;
    EXPECT_EQ(lookout::test::held(Object::parse(answer.body))["details"]["causes"][0]["message"]
                  .as_string(),
              "Invalid value: \"Orphan\": orphanDependents and deletionPropagation cannot be both "
              "set");
  }
  EXPECT_FALSE(is_gone(kConfigMaps, "c"));
}

TEST_F(Deletion, Returns202ForPendingDeletionWithoutOrphans) {
  const std::string path = "/api/v1/namespaces/default/configmaps/";
  for (const char* name : {"a", "b"})
    in(kConfigMaps).create(changed(config_map(name), R"({"metadata":{"finalizers":["x.io/y"]}})"));
  in(kConfigMaps).create(config_map("c"));
  const std::string denied = R"({"orphanDependents":false})";
  EXPECT_EQ(http(server_.port(), "DELETE", path + "a", denied, kJsonBody).code, 202);
  EXPECT_EQ(http(server_.port(), "DELETE", path + "a?orphanDependents=0").code, 202);
  EXPECT_EQ(http(server_.port(), "DELETE", path + "b").code, 200);
  EXPECT_EQ(http(server_.port(), "DELETE", path + "c", denied, kJsonBody).code, 200);
}

TEST_F(Deletion, OfEventsIgnoresDependents) {
  const api::Resource events{"", "v1", "Event", "events", true};
  in(events).create(from_json(
      R"({"metadata":{"name":"e"},"involvedObject":{"namespace":"default"},"reason":"r"})"));
  const auto answer = http(server_.port(), "DELETE",
                           "/api/v1/namespaces/default/events/e?propagationPolicy=Foreground");
  EXPECT_EQ(answer.code, 200);
  EXPECT_EQ(lookout::test::held(from_json(answer.body))["status"].as_string(), "Success");
  EXPECT_TRUE(is_gone(events, "e"));
}

TEST_F(Deletion, EmptyParametersAreNotIgnored) {
  in(kConfigMaps).create(config_map("c"));
  const std::string path = "/api/v1/namespaces/default/configmaps/c";
  const auto refusal = [&](const std::string& query) {
    const auto answer = http(server_.port(), "DELETE", path + query);
    return std::to_string(answer.code) + " " +
           std::string(lookout::test::held(from_json(answer.body))["message"].as_string());
  };
  EXPECT_EQ(refusal("?gracePeriodSeconds="), "400 strconv.ParseInt: parsing \"\": invalid syntax");
  EXPECT_EQ(refusal("?gracePeriodSeconds=99999999999999999999"),
            "400 strconv.ParseInt: parsing \"99999999999999999999\": value out of range");
  EXPECT_EQ(refusal("?propagationPolicy="),
            "422 DeleteOptions.meta.k8s.io \"\" is invalid: propagationPolicy: Unsupported value: "
            "\"\": supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\"");
  const auto other = http(server_.port(), "DELETE", path,
                          R"({"kind":"CreateOptions","apiVersion":"v1"})", kJsonBody);
  EXPECT_EQ(other.code, 400);
  EXPECT_EQ(lookout::test::held(from_json(other.body))["message"].as_string(),
            "decoded object cannot be converted to DeleteOptions");
  EXPECT_FALSE(is_gone(kConfigMaps, "c"));
}

class InUse : public ClientTest {
 protected:
  static constexpr const char* kVolume =
      R"("volumes":[{"name":"v","persistentVolumeClaim":{"claimName":"c"}}])";
  const api::Resource claims_{"", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", true};
  bool is_gone(const std::string& name) const {
    return in(claims_).list({.field_selector = "metadata.name=" + name}).items.empty();
  }
  Object claim(const std::string& name) const {
    return in(claims_).create(from_json(R"({"metadata":{"name":")" + name +
                                        R"("},"spec":{"accessModes":["ReadWriteOnce"],)" +
                                        R"("resources":{"requests":{"storage":"1Gi"}}}})"));
  }
  void remove_at_once(const std::string& pod) const {
    rest::DeleteOptions now;
    now.grace_period_seconds = 0;
    pods().remove(pod, now);
  }
  /// Waits until all terminating claims have been checked.
  void wait_for_protection() const {
    claim("last");
    in(claims_).remove("last");
    EXPECT_TRUE(eventually([&] { return is_gone("last"); }));
  }
};

TEST_F(InUse, AnUnusedClaimIsDeleted) {
  EXPECT_EQ(lookout::test::held(claim("c"))["metadata"]["finalizers"].to_json(),
            R"(["kubernetes.io/pvc-protection"])");
  in(claims_).remove("c");
  EXPECT_TRUE(eventually([&] { return is_gone("c"); }));
}

TEST_F(InUse, AnAttributesClassIsDeletedAfterItsLastClaim) {
  const std::string classes = "/apis/storage.k8s.io/v1/volumeattributesclasses";
  const auto send = [&](const char* method, const std::string& path, const std::string& body = {}) {
    return http(server_.port(), method, path, body);
  };
  const auto is_there = [&] { return send("GET", classes + "/gold").code == 200; };
  const Object created =
      from_json(send("POST", classes,
                     R"({"metadata":{"name":"gold"},"driverName":"d","parameters":{"a":"b"}})")
                    .body);
  EXPECT_EQ(created["metadata"]["finalizers"].to_json(), R"(["kubernetes.io/vac-protection"])");
  in(claims_).create(
      from_json(R"({"metadata":{"name":"c"},"spec":{"accessModes":["ReadWriteOnce"],"resources":)"
                R"({"requests":{"storage":"1Gi"}},"volumeAttributesClassName":"gold"}})"));
  EXPECT_EQ(send("DELETE", classes + "/gold").code, 200);
  send("POST", classes, R"({"metadata":{"name":"last"},"driverName":"d","parameters":{"a":"b"}})");
  send("DELETE", classes + "/last");
  EXPECT_TRUE(eventually([&] { return send("GET", classes + "/last").code == 404; }));
  EXPECT_TRUE(is_there());
  in(claims_).remove("c");
  EXPECT_TRUE(eventually([&] { return !is_there(); }));
}

TEST_F(InUse, AClaimIsDeletedAfterItsLastPod) {
  claim("c");
  const Object user = pods().create(pod("p", R"(,"nodeName":"n",)" + std::string(kVolume)));
  in(claims_).remove("c");
  wait_for_protection();
  EXPECT_TRUE(lookout::test::held(in(claims_).get("c"))["metadata"]["deletionTimestamp"].exists());
  // An ended pod still exists.
  pods().update_status(changed(user, R"({"status":{"phase":"Succeeded"}})"));
  wait_for_protection();
  EXPECT_FALSE(is_gone("c"));
  remove_at_once("p");
  EXPECT_TRUE(eventually([&] { return is_gone("c"); }));
}

TEST_F(InUse, AClaimDoesNotWaitForAPodWithoutANode) {
  claim("c");
  pods().create(pod("p", "," + std::string(kVolume)));
  in(claims_).remove("c");
  EXPECT_TRUE(eventually([&] { return is_gone("c"); }));
}

TEST_F(InUse, AnEphemeralClaimIsDeletedAfterItsPod) {
  const std::string volume = R"(,"ephemeral":{"volumeClaimTemplate":{"spec":{"accessModes":)"
                             R"(["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}}})";
  const Object user = pods().create(pod("p", R"(,"nodeName":"n","volumes":[{"name":"own")" +
                                                 volume + R"(,{"name":"other")" + volume + "]"));
  claim("p-other");
  in(claims_).update(changed(
      claim("p-own"), R"({"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"p",
                          "controller":true,"uid":")" +
                          std::string(user.uid()) + "\"}]}}"));
  in(claims_).remove("p-own");
  in(claims_).remove("p-other");
  EXPECT_TRUE(eventually([&] { return is_gone("p-other"); }));
  wait_for_protection();
  EXPECT_FALSE(is_gone("p-own"));
  remove_at_once("p");
  EXPECT_TRUE(eventually([&] { return is_gone("p-own"); }));
}

// A slow deletion does not block the others.
TEST(NamespacesBesideEachOther, AreEmptiedConcurrently) {
  const auto backend = std::make_shared<WrappedBackend>("configmaps");
  const auto held = std::make_shared<std::atomic<int>>(0);
  // Block until two other namespaces exist.
  backend->on_list = [held](std::string key) -> Awaitable<void> {
    if (!key.starts_with("n-")) co_return;
    ++*held;
    AsyncEvent bell(co_await boost::asio::this_coro::executor);
    while (*held < 3)
      co_await bell.wait(std::chrono::steady_clock::now() + std::chrono::milliseconds(1));
  };
  const RunningServer running(backend);
  const auto namespaces = running.client.resource(kNamespaces);
  for (const char* name : {"n-1", "n-2", "n-3"}) {
    namespaces.create(from_json(R"({"metadata":{"name":")" + std::string(name) + "\"}}"));
    running.client.resource(kConfigMaps, name).create(config_map("a"));
  }
  for (const char* name : {"n-1", "n-2", "n-3"}) namespaces.remove(name);
  EXPECT_TRUE(eventually([&] { return namespaces.list().items.size() == 4; }));
}

// Another server works on the same storage, and this one is slow.
// Deletes an object and creates another one of its name, without the server.
/// Deletes an object and creates another one of its name, without the server.
Awaitable<void> replace(storage::Interface& place, std::string key, Object successor) {
  std::string same = key;
  storage::Preconditions none;
  storage::Interface::Validate anything;
  co_await place.remove(std::move(same), std::move(none), std::move(anything));
  co_await place.create(std::move(key), std::move(successor));
}

Awaitable<void> replace_map(storage::Interface& maps, std::string key) {
  Object successor =
      from_json(R"({"metadata":{"name":"a","namespace":"default","uid":"another"}})");
  co_await replace(maps, std::move(key), std::move(successor));
}

TEST(DeletionBesideAnother, KeepsTheObjectsOfARecreatedNamespace) {
  const auto backend = std::make_shared<WrappedBackend>("configmaps");
  storage::Interface& namespaces = backend->memory().resource("namespaces");
  storage::Interface& maps = backend->memory().resource("configmaps");
  std::atomic<bool> replaced{false};
  // This server has observed the namespace's deletion. Now the other server completes it, and a user
  // recreates the namespace.
  backend->on_list = [&](std::string key) -> Awaitable<void> {
    if (key != "shop/" || replaced) co_return;
    Object successor = from_json(
        R"({"metadata":{"name":"shop","uid":"another"},"spec":{"finalizers":["kubernetes"]}})");
    co_await replace(namespaces, "shop", std::move(successor));
    Object map = from_json(R"({"metadata":{"name":"new","namespace":"shop","uid":"new"}})");
    co_await maps.create("shop/new", std::move(map));
    replaced = true;
  };
  const RunningServer running(backend);
  running.client.resource(kNamespaces).create(from_json(R"({"metadata":{"name":"shop"}})"));
  running.client.resource(kNamespaces).remove("shop");
  ASSERT_TRUE(eventually([&] { return replaced.load(); }));
  // When this namespace is deleted, the controller has processed the first one.
  running.client.resource(kNamespaces).create(from_json(R"({"metadata":{"name":"other"}})"));
  running.client.resource(kNamespaces).remove("other");
  EXPECT_TRUE(eventually([&] { return !running.client.resource(kNamespaces).find("other"); }));
  EXPECT_TRUE(running.client.resource(kConfigMaps, "shop").find("new"));
  EXPECT_EQ(
      lookout::test::held(running.client.resource(kNamespaces).get("shop"))["spec"]["finalizers"]
          .size(),
      1u);
}

TEST(DeletionBesideAnother, OfACollectionKeepsRecreatedObjects) {
  const auto backend = std::make_shared<WrappedBackend>("configmaps");
  storage::Interface& maps = backend->memory().resource("configmaps");
  backend->on_get = [&](std::string key) -> Awaitable<void> {
    if (key == "default/a") co_await replace_map(maps, std::move(key));
  };
  const RunningServer running(backend);
  const auto served = running.client.resource(kConfigMaps, "default");
  served.create(config_map("a"));
  served.create(config_map("b"));
  served.remove_collection();
  EXPECT_EQ(served.list().items.size(), 1u);
}

TEST(DeletionBesideAnother, WaitsForAConcurrentFinalizer) {
  const auto backend = std::make_shared<WrappedBackend>("configmaps");
  storage::Interface& maps = backend->memory().resource("configmaps");
  backend->on_remove = [&](std::string key) -> Awaitable<void> {
    storage::Interface::Update hold = [](const Object& present) {
      return from_json(R"({"metadata":{"name":"a","namespace":"default","uid":")" +
                       std::string(present.uid()) + R"(","finalizers":["example.com/slow"]}})");
    };
    storage::Preconditions none;
    co_await maps.guaranteed_update(std::move(key), false, std::move(none), std::move(hold));
  };
  const RunningServer running(backend);
  const auto served = running.client.resource(kConfigMaps, "default");
  served.create(config_map("a"));
  const Object answer = served.remove("a");
  EXPECT_TRUE(answer["metadata"]["deletionTimestamp"].exists()) << answer.to_json();
  EXPECT_TRUE(lookout::test::held(served.get("a"))["metadata"]["deletionTimestamp"].exists());
}

TEST(DeletionBesideAnother, OfTheLastFinalizerKeepsARecreatedObject) {
  const auto backend = std::make_shared<WrappedBackend>("configmaps");
  storage::Interface& maps = backend->memory().resource("configmaps");
  backend->on_remove = [&](std::string key) { return replace_map(maps, std::move(key)); };
  const RunningServer running(backend);
  const auto served = running.client.resource(kConfigMaps, "default");
  served.create(from_json(R"({"metadata":{"name":"a","finalizers":["example.com/slow"]}})"));
  served.remove("a");
  served.patch("a", rest::PatchType::kMerge, R"({"metadata":{"finalizers":null}})");
  EXPECT_EQ(served.get("a").uid(), "another");
}

TEST(DeletionBesideAnother, ByUidKeepsARecreatedObject) {
  const auto backend = std::make_shared<WrappedBackend>("pods");
  storage::Interface& stored = backend->memory().resource("pods");
  EventLoop loop(1);
  // A deletion that was started but not completed.
  loop.run(stored.create("default/a", from_json(R"({"apiVersion":"v1","kind":"Pod","metadata":{
      "name":"a","namespace":"default","uid":"first","deletionGracePeriodSeconds":0,
      "deletionTimestamp":"2100-01-01T00:00:00Z"}})")));
  backend->on_remove = [&](std::string key) -> Awaitable<void> {
    Object successor = from_json(R"({"apiVersion":"v1","kind":"Pod","metadata":{
        "name":"a","namespace":"default","uid":"another"}})");
    co_await replace(stored, std::move(key), std::move(successor));
  };
  const RunningServer running(backend);
  const auto pods = running.client.resource(kPods, "default");
  rest::DeleteOptions first;
  first.precondition_uid = "first";
  EXPECT_THROW(pods.remove("a", first), api::StatusError);
  EXPECT_EQ(pods.get("a").uid(), "another");
}

}  // namespace
}  // namespace lookout::apiserver
