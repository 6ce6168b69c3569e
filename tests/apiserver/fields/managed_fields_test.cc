// The entries of metadata.managedFields.
#include "apiserver/fields/managed_fields.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lookout/api/time.h"
#include "tests/apiserver/fields/field_texts.h"

namespace lookout::apiserver::fields {
namespace {

std::string entry(const std::string& manager, const std::string& operation, const std::string& time,
                  const std::string& field, const std::string& version = "v1") {
  return fmt::format(
      R"({{"manager":"{}","operation":"{}","apiVersion":"{}","time":"{}","fieldsType":"FieldsV1",)"
      R"("fieldsV1":{{"f:{}":{{}}}}}})",
      manager, operation, version, time, field);
}

ManagedFields managed(const std::vector<std::string>& entries) {
  return ManagedFields::parse(value(fmt::format("[{}]", fmt::join(entries, ",")))).value();
}

std::string text(ManagedFields& fields) {
  json::Document document;
  return json::to_json(fields.to_json(document.GetAllocator()));
}

TEST(ManagedFieldsEntries, RoundTrip) {
  const std::string one =
      R"([{"manager":"web","operation":"Apply","apiVersion":"apps/v1","time":"2026-01-02T03:04:05Z",)"
      R"("fieldsType":"FieldsV1","fieldsV1":{"f:spec":{"f:replicas":{}}},"subresource":"scale"}])";
  auto fields = ManagedFields::parse(value(one)).value();
  EXPECT_EQ(text(fields), one);
}

TEST(ManagedFieldsEntries, AreOrderedByOperationTimeAndName) {
  auto fields = managed({entry("b", "Update", "2026-01-01T00:00:00Z", "a"),
                         entry("c", "Apply", "2026-01-01T00:00:01Z", "b"),
                         entry("d", "Apply", "2026-01-01T00:00:00Z", "c"),
                         entry("a", "Update", "2026-01-01T00:00:00Z", "d")});
  (void)text(fields);
  std::string order;
  for (const Entry& one : fields.entries()) order += one.owner.manager;
  EXPECT_EQ(order, "dcab");
}

TEST(ManagedFieldsEntries, AreRejectedIfMalformed) {
  for (const char* entries :
       {R"({})", R"([1])", R"([{"manager":"a","operation":"Apply"}])",
        R"([{"operation":"Apply","apiVersion":"v1"}])",
        R"([{"operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV2"}])",
        R"([{"operation":"Change","apiVersion":"v1","fieldsType":"FieldsV1"}])",
        R"([{"operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","time":"yesterday"}])",
        R"([{"operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"a":1}}])"})
    EXPECT_FALSE(ManagedFields::parse(value(entries))) << entries;
  EXPECT_TRUE(ManagedFields::parse(value("null"))->empty());
}

TEST(ManagedFieldsEntries, OfUpdatersInTwoVersionsAreSeparate) {
  const auto fields = managed({entry("a", "Update", "2026-01-01T00:00:00Z", "a", "v1"),
                               entry("a", "Update", "2026-01-01T00:00:00Z", "b", "v2"),
                               entry("a", "Apply", "2026-01-01T00:00:00Z", "c", "v1"),
                               entry("a", "Apply", "2026-01-01T00:00:00Z", "d", "v2")});
  EXPECT_EQ(fields.entries().size(), 3u);
}

TEST(ManagedFieldsEntries, MergeOldestUpdaters) {
  std::vector<std::string> entries;
  for (int i = 0; i < 12; ++i) {
    entries.push_back(entry(fmt::format("m{:02}", i), "Update",
                            fmt::format("2026-01-01T00:00:{:02}Z", i), fmt::format("x{}", i)));
  }
  auto fields = managed(entries);
  fields.cap_updaters(10);
  ASSERT_EQ(fields.entries().size(), 10u);
  Entry* ancient = fields.find({"ancient-changes", Operation::kUpdate, "", "v1"});
  ASSERT_NE(ancient, nullptr);
  EXPECT_EQ(ancient->set.size(), 3u);
  EXPECT_EQ(api::format_time(*ancient->time), "2026-01-01T00:00:02Z");
  // The next updater is merged into the same entry.
  fields.entries().push_back(
      managed({entry("last", "Update", "2026-01-01T00:01:00Z", "y")}).entries().front());
  fields.cap_updaters(10);
  EXPECT_EQ(fields.entries().size(), 10u);
  EXPECT_EQ(fields.find({"ancient-changes", Operation::kUpdate, "", "v1"})->set.size(), 4u);
}

TEST(ManagedFieldsEntries, DoNotMergeDifferentVersions) {
  std::vector<std::string> entries;
  for (int i = 0; i < 12; ++i)
    entries.push_back(entry("m", "Update", "2026-01-01T00:00:00Z", "x", fmt::format("v{}", i)));
  auto fields = managed(entries);
  fields.cap_updaters(10);
  EXPECT_EQ(fields.entries().size(), 12u);
}

/// An update by "c" in which these fields are gained and lost.
Update update_of(const std::string& gained, const std::string& lost) {
  Update update;
  update.self = {"c", Operation::kUpdate, "", "v1"};
  update.time = *api::parse_time("2026-01-01T00:00:09Z");
  update.gained = parse_fields_v1(value(gained)).value();
  update.lost = parse_fields_v1(value(lost)).value();
  update.touched = update.gained.united(update.lost);
  return update;
}

/// The resulting entries; empty if more than a time has changed.
std::string renewed(const std::vector<std::string>& entries, const std::string& gained,
                    const std::string& lost = "{}") {
  json::Document document = value(fmt::format("[{}]", fmt::join(entries, ",")));
  const std::string before = json::to_json(document);
  if (renew_time(document, update_of(gained, lost), 2, document.GetAllocator()))
    return json::to_json(document);
  EXPECT_EQ(json::to_json(document), before);
  return {};
}

TEST(ManagedFieldsEntries, GetANewTimeIfTheyOwnAChange) {
  const std::string then = "2026-01-01T00:00:00Z";
  const std::string now = "2026-01-01T00:00:09Z";
  const std::string mine = entry("c", "Update", then, "a");
  const std::string other = entry("d", "Update", "2026-01-01T00:00:05Z", "b");
  EXPECT_EQ(renewed({mine, other}, R"({"f:a":{}})"),
            "[" + other + "," + entry("c", "Update", now, "a") + "]");
  EXPECT_EQ(renewed({mine, other}, "{}"), "[" + mine + "," + other + "]");
  EXPECT_EQ(renewed({mine, other}, "{}", R"({"f:e":{}})"), "[" + mine + "," + other + "]");
  // A field changes its owner.
  EXPECT_EQ(renewed({mine, other}, R"({"f:b":{}})"), "");
  EXPECT_EQ(renewed({mine, other}, R"({"f:e":{}})"), "");
  EXPECT_EQ(renewed({mine, other}, "{}", R"({"f:a":{}})"), "");
  EXPECT_EQ(renewed({mine, other}, "{}", R"({"f:b":{}})"), "");
  EXPECT_EQ(renewed({other}, R"({"f:a":{}})"), "");
  // Too many entries, a duplicate owner, another version, no entries.
  EXPECT_EQ(renewed({mine, other, entry("e", "Update", then, "e")}, R"({"f:a":{}})"), "");
  EXPECT_EQ(renewed({mine, mine}, R"({"f:a":{}})"), "");
  EXPECT_EQ(renewed({mine, entry("d", "Update", then, "b", "v0")}, R"({"f:a":{}})"), "");
  EXPECT_EQ(renewed({}, "{}"), "");
  EXPECT_EQ(renewed({R"({"manager":""})"}, "{}"), "");
}

TEST(ManagedFieldsEntries, AreResetByAnEmptyListAndByAnEmptyEntry) {
  EXPECT_TRUE(is_reset(value("[]")));
  EXPECT_TRUE(is_reset(value("[{}]")));
  EXPECT_TRUE(is_reset(value(R"([{"manager":""}])")));
  EXPECT_FALSE(is_reset(value("null")));
  EXPECT_FALSE(is_reset(value("[{},{}]")));
  EXPECT_FALSE(is_reset(value(R"([{"manager":"a"}])")));
}

TEST(ManagedFieldsEntries, AreComparedWithoutTimes) {
  const auto a = value("[" + entry("a", "Apply", "2026-01-01T00:00:00Z", "x") + "]");
  const auto b = value("[" + entry("a", "Apply", "2026-01-01T00:00:09Z", "x") + "]");
  const auto c = value("[" + entry("a", "Apply", "2026-01-01T00:00:00Z", "y") + "]");
  EXPECT_TRUE(equal_but_for_times(&a, &b));
  EXPECT_FALSE(equal_but_for_times(&a, &c));
  EXPECT_FALSE(equal_but_for_times(&a, nullptr));
  EXPECT_TRUE(equal_but_for_times(nullptr, nullptr));
}

TEST(Owners, AreNamedInConflicts) {
  EXPECT_EQ((Owner{"a", Operation::kApply, "", "v1"}).to_string(), R"("a")");
  EXPECT_EQ((Owner{"a", Operation::kUpdate, "scale", "apps/v1"}).to_string(),
            R"("a" with subresource "scale" using apps/v1)");
}

}  // namespace
}  // namespace lookout::apiserver::fields
