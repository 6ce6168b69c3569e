#include "lookout/controller/finalizer_registry.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "lookout/apiserver/server.h"
#include "lookout/controller/finalizers.h"
#include "lookout/k8s/core/v1.h"
#include "lookout/k8s/core/v1_draft.h"
#include "lookout/rest/client.h"

namespace lookout::controller {
namespace {

constexpr const char* kOne = "finalizers.example.com/one";
constexpr const char* kTwo = "finalizers.example.com/two";

/// A pod with these finalizers, with or without a deletion timestamp.
k8s::core::v1::Pod pod(bool deleted, const std::vector<std::string>& finalizers) {
  const auto draft = k8s::core::v1::Pod::draft("web", "shop");
  if (deleted) draft["metadata"]["deletionTimestamp"].set("2026-11-20T11:14:57Z");
  for (const std::string& each : finalizers) add_finalizer(draft, each);
  return draft.build();
}

std::vector<std::string> finalizers_of(const k8s::core::v1::PodDraft& draft) {
  std::vector<std::string> out;
  for (const std::string_view each : draft.metadata().finalizers()) out.emplace_back(each);
  return out;
}

class FinalizerRegistryTest : public testing::Test {
 protected:
  /// Registers a finalizer that records its calls.
  void add(const std::string& name) {
    registry_.add(name, [this, name](const api::ObjectDraft&) { ran_.push_back(name); });
  }

  FinalizerRegistry registry_;
  std::vector<std::string> ran_;
};

TEST_F(FinalizerRegistryTest, ANameIsRegisteredOnce) {
  add(kOne);
  EXPECT_THROW(add(kOne), InvalidArgument);
  add(kTwo);
  EXPECT_THROW(add("no name"), InvalidArgument);
  EXPECT_THROW(registry_.add("example.com/x", nullptr), InvalidArgument);
}

TEST_F(FinalizerRegistryTest, ALiveObjectGetsMissingFinalizers) {
  add(kOne);
  add(kTwo);
  const auto change = pod(false, {kTwo}).edit();
  const auto result = registry_.finalize(change);
  EXPECT_TRUE(result.updated);
  EXPECT_FALSE(result.status_updated);
  EXPECT_THAT(finalizers_of(change), testing::ElementsAre(kTwo, kOne));
  EXPECT_THAT(ran_, testing::IsEmpty());
}

TEST_F(FinalizerRegistryTest, ALiveObjectWithAllFinalizersIsUnchanged) {
  add(kOne);
  const auto change = pod(false, {kOne}).edit();
  EXPECT_FALSE(registry_.finalize(change).updated);
  EXPECT_FALSE(change.changed());
}

TEST_F(FinalizerRegistryTest, WithoutFinalizersNothingHappens) {
  const auto live = pod(false, {}).edit();
  EXPECT_FALSE(registry_.finalize(live).updated);
  const auto deleted = pod(true, {"example.com/other"}).edit();
  EXPECT_FALSE(registry_.finalize(deleted).updated);
}

TEST_F(FinalizerRegistryTest, ADeletedObjectIsFinalized) {
  add(kOne);
  const auto change = pod(true, {kOne}).edit();
  const auto result = registry_.finalize(change);
  EXPECT_TRUE(result.updated);
  EXPECT_THAT(finalizers_of(change), testing::IsEmpty());
  EXPECT_THAT(ran_, testing::ElementsAre(kOne));
  result.throw_if_failed();
}

TEST_F(FinalizerRegistryTest, ADeletedObjectGetsNoFinalizers) {
  add(kOne);
  const auto change = pod(true, {"example.com/other"}).edit();
  EXPECT_FALSE(registry_.finalize(change).updated);
  EXPECT_THAT(finalizers_of(change), testing::ElementsAre("example.com/other"));
  EXPECT_THAT(ran_, testing::IsEmpty());
}

TEST_F(FinalizerRegistryTest, SeveralFinalizersRunInOrder) {
  add(kTwo);
  add(kOne);
  const auto change = pod(true, {kOne, "example.com/other", kTwo}).edit();
  EXPECT_TRUE(registry_.finalize(change).updated);
  EXPECT_THAT(ran_, testing::ElementsAre(kTwo, kOne));
  EXPECT_THAT(finalizers_of(change), testing::ElementsAre("example.com/other"));
}

TEST_F(FinalizerRegistryTest, AFailedFinalizerStays) {
  registry_.add(kOne, [](const api::ObjectDraft&) { throw std::runtime_error("no such zone"); });
  const auto change = pod(true, {kOne}).edit();
  const auto result = registry_.finalize(change);
  EXPECT_FALSE(result.updated);
  EXPECT_FALSE(result.status_updated);
  EXPECT_THAT(finalizers_of(change), testing::ElementsAre(kOne));
  try {
    result.throw_if_failed();
    FAIL() << "it failed";
  } catch (const FinalizerError& e) {
    EXPECT_STREQ(e.what(), "finalizer \"finalizers.example.com/one\" failed: no such zone");
  }
}

TEST_F(FinalizerRegistryTest, AFailureDoesNotStopOtherFinalizers) {
  registry_.add(kOne, [](const api::ObjectDraft& object) {
    object["status"]["message"].set("waiting for the zone");
    throw std::runtime_error("no such zone");
  });
  add(kTwo);
  registry_.add("example.com/three", [](const api::ObjectDraft&) { throw 3; });
  const auto change = pod(true, {kOne, kTwo, "example.com/three"}).edit();
  const auto result = registry_.finalize(change);
  EXPECT_TRUE(result.updated);
  EXPECT_TRUE(result.status_updated);
  EXPECT_THAT(finalizers_of(change), testing::ElementsAre(kOne, "example.com/three"));
  ASSERT_EQ(result.failures.size(), 2U);
  EXPECT_THROW(result.throw_if_failed(), FinalizerError);
}

TEST_F(FinalizerRegistryTest, AStatusChangeOfAFinalizerIsReported) {
  registry_.add(kOne, [](const api::ObjectDraft& object) { object["status"]["phase"].set("x"); });
  const auto change = pod(true, {kOne}).edit();
  const auto result = registry_.finalize(change);
  EXPECT_TRUE(result.updated);
  EXPECT_TRUE(result.status_updated);
}

TEST_F(FinalizerRegistryTest, AnObjectIsRemovedAfterItsLastFinalizer) {
  const apiserver::Server server;
  const rest::Client client(server.client_config());
  const auto maps = client.resource<k8s::core::v1::ConfigMap>("default");
  add(kOne);
  add(kTwo);
  const auto live = maps.create(k8s::core::v1::ConfigMap::draft("m", "default")).edit();
  EXPECT_TRUE(registry_.finalize(live).updated);
  maps.patch(live);
  maps.remove("m");
  const auto change = maps.get("m").edit();
  EXPECT_TRUE(registry_.finalize(change).updated);
  maps.patch(change);
  EXPECT_FALSE(maps.find("m"));
  EXPECT_THAT(ran_, testing::ElementsAre(kOne, kTwo));
}

}  // namespace
}  // namespace lookout::controller
