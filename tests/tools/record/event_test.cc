#include "lookout/tools/record/event.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <initializer_list>
#include <string>
#include <string_view>

#include "lookout/api/error.h"
#include "lookout/api/fields.h"
#include "lookout/testing/fake_recorder.h"

namespace lookout::record {
namespace {

api::Object pod() {
  return api::Object::parse(R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"foo",
      "namespace":"baz","uid":"bar","resourceVersion":"7"}})");
}

TEST(ReferenceToTest, HasTheIdentityOfTheObject) {
  EXPECT_EQ(reference_to(pod(), "spec.containers[2]"),
            (ObjectReference{.api_version = "v1",
                             .kind = "Pod",
                             .ns = "baz",
                             .name = "foo",
                             .uid = "bar",
                             .resource_version = "7",
                             .field_path = "spec.containers[2]"}));
}

TEST(ReferenceToTest, NeedsATypedObject) {
  EXPECT_THROW(reference_to(api::Object()), InvalidArgument);
  EXPECT_THROW(reference_to(api::Object::parse(R"({"kind":"Pod","metadata":{"name":"a"}})")),
               InvalidArgument);
}

TEST(EventNameTest, CombinesTheObjectsNameAndTheTime) {
  EXPECT_EQ(make_event_name("test-pod", 105999103295324396, "other"), "test-pod.178959f726d80ec");
}

TEST(EventNameTest, UsesAFallbackForInvalidNames) {
  const std::string too_long(300, 'x');
  for (const std::string_view name :
       {std::string_view(too_long), std::string_view("test.POD"),
        std::string_view("test.pod/invalid!chars?"), std::string_view("--test.pod/invalid!chars?"),
        std::string_view("system:node:a")}) {
    EXPECT_EQ(make_event_name(name, 105999103295324396, "other"), "other") << name;
  }
}

struct LimitedText {
  std::string_view text;
  std::size_t most;
  std::string_view expected;
};
void expect_limited(std::initializer_list<LimitedText> cases) {
  for (const LimitedText& c : cases)
    EXPECT_EQ(limit_text(c.text, c.most), c.expected) << testing::PrintToString(c.text);
}

TEST(LimitTextTest, TruncatesBetweenCharacters) {
  expect_limited({
      {"abc", 3, "abc"},
      {"abcd", 3, "abc"},
      {"a\xC3\xA9", 3, "a\xC3\xA9"},
      {"a\xC3\xA9", 2, "a"},
      {"\xF0\x9F\x98\x80", 3, ""},
      {"\xF0\x9F\x98\x80", 4, "\xF0\x9F\x98\x80"},
      {"", 0, ""},
  });
}

TEST(LimitTextTest, ReplacesInvalidUtf8) {
  expect_limited({
      {"a\xFFz", 9, "a\xEF\xBF\xBDz"},
      {"\xC3", 9, "\xEF\xBF\xBD"},
      // An overlong form, a surrogate, an invalid code point.
      {"\xC0\x80", 9, "\xEF\xBF\xBD\xEF\xBF\xBD"},
      {"\xED\xA0\x80", 9, "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD"},
      {"\xF4\x90\x80\x80", 3, "\xEF\xBF\xBD"},
      {"\xFF", 2, ""},
      {"\xFF", std::string::npos, "\xEF\xBF\xBD"},
  });
}

TEST(EventFieldSelectorTest, NamesTheFieldsOfEachApi) {
  ObjectReference regarding;
  regarding.name = "foo";
  regarding.kind = "Pod";
  regarding.api_version = "v1";
  regarding.uid = "bar";
  EXPECT_EQ(field_selector("v1", regarding),
            "involvedObject.apiVersion=v1,involvedObject.kind=Pod,involvedObject.name=foo,"
            "involvedObject.uid=bar");
  regarding.uid.clear();
  EXPECT_EQ(field_selector("events.k8s.io/v1", regarding),
            "regarding.apiVersion=v1,regarding.kind=Pod,regarding.name=foo");
  EXPECT_EQ(field_selector("v1", ObjectReference()), "");
  EXPECT_THROW(field_selector("v2", regarding), InvalidArgument);
}

TEST(EventFieldSelectorTest, EscapesSpecialCharactersOfSelectors) {
  ObjectReference regarding;
  regarding.name = "a,b=c\\d";
  const auto selector = api::fields::parse(field_selector("v1", regarding));
  ASSERT_EQ(selector.requirements().size(), 1U);
  EXPECT_EQ(selector.requirements()[0].value, "a,b=c\\d");
}

TEST(FakeRecorderTest, KeepsEvents) {
  test::FakeRecorder recorder;
  recorder.normal(pod(), "Created", "deployment web");
  recorder.warning(pod(), "Failed", "no such image");
  EXPECT_THAT(recorder.texts(), testing::ElementsAre("Normal Created deployment web",
                                                     "Warning Failed no such image"));
  EXPECT_EQ(recorder.events()[0].regarding, reference_to(pod()));
}

}  // namespace
}  // namespace lookout::record
