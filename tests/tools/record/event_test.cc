#include "lookout/tools/record/event.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  const ObjectReference reference = reference_to(pod(), "spec.containers[2]");
  EXPECT_EQ(reference.api_version, "v1");
  EXPECT_EQ(reference.kind, "Pod");
  EXPECT_EQ(reference.ns, "baz");
  EXPECT_EQ(reference.name, "foo");
  EXPECT_EQ(reference.uid, "bar");
  EXPECT_EQ(reference.resource_version, "7");
  EXPECT_EQ(reference.field_path, "spec.containers[2]");
}

TEST(ReferenceToTest, NeedsATypedObject) {
  EXPECT_THROW(reference_to(api::Object()), InvalidArgument);
  EXPECT_THROW(reference_to(api::Object::parse(R"({"kind":"Pod","metadata":{"name":"a"}})")),
               InvalidArgument);
}

TEST(EventNameTest, IsTheObjectsNameAndTheTime) {
  EXPECT_EQ(make_event_name("test-pod", 105999103295324396, "other"), "test-pod.178959f726d80ec");
}

TEST(EventNameTest, IsTheFallbackIfAnEventCannotHaveThatName) {
  const std::string too_long(300, 'x');
  for (const std::string_view name :
       {std::string_view(too_long), std::string_view("test.POD"),
        std::string_view("test.pod/invalid!chars?"), std::string_view("--test.pod/invalid!chars?"),
        std::string_view("system:node:a")}) {
    EXPECT_EQ(make_event_name(name, 105999103295324396, "other"), "other") << name;
  }
}

TEST(LimitTextTest, CutsAtTheBorderOfACharacter) {
  EXPECT_EQ(limit_text("abc", 3), "abc");
  EXPECT_EQ(limit_text("abcd", 3), "abc");
  EXPECT_EQ(limit_text("a\xC3\xA9", 3), "a\xC3\xA9");
  EXPECT_EQ(limit_text("a\xC3\xA9", 2), "a");
  EXPECT_EQ(limit_text("\xF0\x9F\x98\x80", 3), "");
  EXPECT_EQ(limit_text("\xF0\x9F\x98\x80", 4), "\xF0\x9F\x98\x80");
  EXPECT_EQ(limit_text("", 0), "");
}

TEST(LimitTextTest, ReplacesWhatIsNotUtf8) {
  EXPECT_EQ(limit_text("a\xFFz", 9), "a\xEF\xBF\xBDz");
  EXPECT_EQ(limit_text("\xC3", 9), "\xEF\xBF\xBD");
  // An overlong form, a surrogate, a code point that does not exist.
  EXPECT_EQ(limit_text("\xC0\x80", 9), "\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(limit_text("\xED\xA0\x80", 9), "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  EXPECT_EQ(limit_text("\xF4\x90\x80\x80", 3), "\xEF\xBF\xBD");
  EXPECT_EQ(limit_text("\xFF", 2), "");
  EXPECT_EQ(limit_text("\xFF", std::string::npos), "\xEF\xBF\xBD");
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

TEST(EventFieldSelectorTest, EscapesWhatSelectorsGiveAMeaningTo) {
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
