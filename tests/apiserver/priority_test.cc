// New pods get their priority from PriorityClasses.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "tests/apiserver/client_fixture.h"

namespace lookout::apiserver {
namespace {

const api::Resource kPriorityClasses{"scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses",
                                     false};

class Priorities : public ClientTest {
 protected:
  void create_class(const std::string& name, int value, const std::string& more = "") {
    all(kPriorityClasses)
        .create(from_json(R"({"metadata":{"name":")" + name + R"("},"value":)" +
                          std::to_string(value) + more + "}"));
  }
  static void expect(const Object& pod, int priority, const std::string& policy,
                     const std::string& name) {
    EXPECT_EQ(pod["spec"]["priority"].as_int(), priority);
    EXPECT_EQ(pod["spec"]["preemptionPolicy"].as_string(), policy);
    EXPECT_EQ(pod["spec"]["priorityClassName"].as_string(), name);
  }
};

TEST_F(Priorities, ComeFromUserDefinedClasses) {
  create_class("high", 1000, R"(,"preemptionPolicy":"Never")");
  expect(pods().create(pod("a", R"(,"priorityClassName":"high")")), 1000, "Never", "high");
  // Explicit values are allowed if they equal the computed ones.
  expect(pods().create(
             pod("b", R"(,"priorityClassName":"high","priority":1000,"preemptionPolicy":"Never")")),
         1000, "Never", "high");
  expect(pods().create(pod("c", R"(,"priorityClassName":"system-node-critical")")), 2000001000,
         "PreemptLowerPriority", "system-node-critical");
  expect(pods().create(pod("d")), 0, "PreemptLowerPriority", "");
}

TEST_F(Priorities, ComeFromTheDefaultClass) {
  create_class("usual", 50, R"(,"globalDefault":true)");
  expect(pods().create(pod("a")), 50, "PreemptLowerPriority", "usual");
  expect(pods().create(pod("b", R"(,"priorityClassName":"usual")")), 50, "PreemptLowerPriority",
         "usual");
}

TEST_F(Priorities, HaveOneDefault) {
  create_class("usual", 50, R"(,"globalDefault":true)");
  const auto refusal = [](const std::function<void()>& operation) {
    const api::Status status = status_of(operation);
    EXPECT_EQ(status.code, 403);
    return status.message;
  };
  const std::string message =
      "priorityclasses.scheduling.k8s.io \"lower\" is forbidden: PriorityClass usual is already "
      "marked as default. Only one default can exist";
  EXPECT_EQ(refusal([&] { create_class("lower", 40, R"(,"globalDefault":true)"); }), message);
  create_class("lower", 40);
  const auto mark = [&](const std::string& name, const std::string& value) {
    all(kPriorityClasses)
        .patch(name, rest::PatchType::kMerge, R"({"globalDefault":)" + value + "}");
  };
  EXPECT_EQ(refusal([&] { mark("lower", "true"); }), message);
  // The default itself may be changed.
  all(kPriorityClasses).patch("usual", rest::PatchType::kMerge, R"({"description":"x"})");
  mark("usual", "false");
  mark("lower", "true");
  expect(pods().create(pod("a")), 40, "PreemptLowerPriority", "lower");
}

TEST_F(Priorities, ContradictionsAreRejected) {
  create_class("high", 1000);
  const auto refusal = [&](const std::string& spec) {
    return status_of([&] { pods().create(pod("a", spec)); });
  };
  const auto unknown = refusal(R"(,"priorityClassName":"none")");
  EXPECT_EQ(unknown.code, 403);
  EXPECT_EQ(unknown.message, "pods \"a\" is forbidden: no PriorityClass with name none was found");
  EXPECT_EQ(
      refusal(R"(,"priorityClassName":"high","priority":7)").message,
      "pods \"a\" is forbidden: the integer value of priority (7) must not be provided in pod "
      "spec; priority admission controller computed 1000 from the given PriorityClass name");
  EXPECT_EQ(refusal(R"(,"priority":7)").code, 403);
  const auto unnamed = status_of([&] {
    pods().create(from_json(R"({"metadata":{"generateName":"a-"},"spec":{"priority":7,
        "containers":[{"name":"main","image":"nginx:1"}]}})"));
  });
  EXPECT_THAT(unnamed.message, testing::StartsWith("pods \"a-\" is forbidden: "));
  EXPECT_EQ(
      refusal(R"(,"priorityClassName":"high","preemptionPolicy":"Never")").message,
      "pods \"a\" is forbidden: the string value of PreemptionPolicy (Never) must not be "
      "provided in pod spec; priority admission controller computed PreemptLowerPriority from "
      "the given PriorityClass name");
}

}  // namespace
}  // namespace lookout::apiserver
