#include "lookout/controller/conditions.h"

#include <gtest/gtest.h>

#include <chrono>

#include "lookout/api/error.h"
#include "tests/support/held.h"

namespace lookout::controller {
namespace {

using namespace std::chrono_literals;

const api::Time kNow{std::chrono::sys_days{std::chrono::year(2026) / 11 / 22}};

api::Object website(const char* rest = "") {
  return api::Object::parse(
      std::string(R"({"kind":"Website","metadata":{"name":"a","generation":3})") + rest + "}");
}

Condition ready(ConditionStatus status, const char* reason = "Deployed") {
  Condition out;
  out.type = "Ready";
  out.status = status;
  out.reason = reason;
  return out;
}

TEST(ConditionsTest, ANewConditionHasAllFields) {
  const api::ObjectDraft draft(website());
  EXPECT_TRUE(set_condition(draft, ready(ConditionStatus::kTrue), kNow));
  EXPECT_EQ(
      lookout::test::held(draft.build())["status"],
      lookout::test::held(api::Object::parse(R"({"s":{"conditions":[{"type":"Ready","status":"True",
                "reason":"Deployed","message":"","observedGeneration":3,
                "lastTransitionTime":"2026-11-22T00:00:00Z"}]}})"))["s"]);
  EXPECT_TRUE(is_condition_true(draft.build(), "Ready"));
}

TEST(ConditionsTest, InvalidUtf8IsReplaced) {
  const api::ObjectDraft draft(website());
  Condition condition = ready(ConditionStatus::kTrue);
  condition.message = "\xff";
  EXPECT_THROW(set_condition(draft, condition, kNow), InvalidArgument);
  EXPECT_FALSE(draft.changed());
  condition.message = "fine";
  set_condition(draft, condition, kNow);
  const api::ObjectDraft again(draft.build());
  condition.status = ConditionStatus::kFalse;
  condition.message = "\xff";
  EXPECT_THROW(set_condition(again, condition, kNow), InvalidArgument);
  EXPECT_FALSE(again.changed());
}

TEST(ConditionsTest, TheSameConditionChangesNothing) {
  const api::ObjectDraft first(website());
  set_condition(first, ready(ConditionStatus::kTrue), kNow);
  const api::ObjectDraft again(first.build());
  EXPECT_FALSE(set_condition(again, ready(ConditionStatus::kTrue), kNow + 1h));
  EXPECT_FALSE(again.changed());
}

TEST(ConditionsTest, TheTransitionTimeChangesOnlyWithTheStatus) {
  const api::ObjectDraft draft(website());
  set_condition(draft, ready(ConditionStatus::kTrue), kNow);
  EXPECT_TRUE(set_condition(draft, ready(ConditionStatus::kTrue, "Scaled"), kNow + 1h));
  EXPECT_EQ(lookout::test::held(draft.build())["status"]["conditions"][0]["lastTransitionTime"]
                .as_string(),
            "2026-11-22T00:00:00Z");
  EXPECT_TRUE(set_condition(draft, ready(ConditionStatus::kFalse, "Scaled"), kNow + 2h));
  EXPECT_EQ(lookout::test::held(draft.build())["status"]["conditions"][0]["lastTransitionTime"]
                .as_string(),
            "2026-11-22T02:00:00Z");
  EXPECT_EQ(condition_status(draft.build(), "Ready"), ConditionStatus::kFalse);
}

TEST(ConditionsTest, OtherConditionsStay) {
  const api::ObjectDraft draft(
      website(R"(,"status":{"conditions":[{"type":"Other","status":"Unknown","reason":"Why"}]})"));
  EXPECT_TRUE(set_condition(draft, ready(ConditionStatus::kTrue), kNow));
  EXPECT_EQ(condition_status(draft.build(), "Other"), ConditionStatus::kUnknown);
  EXPECT_TRUE(remove_condition(draft, "Ready"));
  EXPECT_FALSE(remove_condition(draft, "Ready"));
  EXPECT_FALSE(condition_status(draft.build(), "Ready"));
  EXPECT_EQ(condition_status(draft.build(), "Other"), ConditionStatus::kUnknown);
}

TEST(ConditionsTest, NeedATypeAndAReason) {
  const api::ObjectDraft draft(website());
  EXPECT_THROW(set_condition(draft, ready(ConditionStatus::kTrue, "")), InvalidArgument);
  EXPECT_FALSE(draft.changed());
}

}  // namespace
}  // namespace lookout::controller
