// Reading fields that a projection drops. (Not reported in builds with NDEBUG.)
#include "lookout/api/detail/projected_objects.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "lookout/api/json.h"
#include "lookout/api/object.h"
#include "lookout/api/projection.h"
#include "tests/support/held.h"
#include "tests/support/matchers.h"

namespace lookout::api {
namespace {

std::string said(const std::function<void()>& read) {
  testing::internal::CaptureStderr();
  read();
  return testing::internal::GetCapturedStderr();
}

void expect_said(const std::string& path, const std::function<void()>& read) {
  const std::string what = said(read);
  if (detail::kProjectionsAreChecked) {
    EXPECT_THAT(what, HasSubstr("lookout: " + path + " was read"));
  } else {
    EXPECT_EQ(what, "");
  }
}

Object decode(const Projection& projection) {
  std::string text = R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"web",)"
                     R"("labels":{"app":"web"},"annotations":{"a":"b"}},)"
                     R"("spec":{"nodeName":"n","containers":[{"image":"i","name":"c"}]},)"
                     R"("status":{"phase":"Running","podIP":"10.0.0.1"}})";
  JsonDecoder decoder(projection);
  return decoder.decode(text);
}

TEST(ProjectedObjectsTest, KeptAndAbsentFieldsMayBeRead) {
  const Object object = decode(Projection::keep({"metadata.labels", "status.phase", "spec"}));
  EXPECT_EQ(said([&] {
              EXPECT_EQ(object.name(), "web");
              EXPECT_EQ(object.ns(), "");
              EXPECT_FALSE(object.labels()["none"].exists());
              EXPECT_EQ(object["status"]["phase"].as_string(), "Running");
              EXPECT_FALSE(object["status"]["phase"]["none"].exists());
              EXPECT_FALSE(object["spec"]["containers"][0]["none"].exists());
              EXPECT_FALSE(object["spec"]["containers"]["none"].exists());
            }),
            "");
  const Object whole = decode({});
  EXPECT_EQ(said([&] { EXPECT_FALSE(whole["none"].exists()); }), "");
}

TEST(ProjectedObjectsTest, AnOmittedFieldIsReportedOncePerPath) {
  const Object object =
      decode(Projection::keep({"spec.containers.image", "status.phase", "metadata.annotations"}));
  expect_said(".spec.nodeName", [&] { EXPECT_FALSE(object["spec"]["nodeName"].exists()); });
  EXPECT_EQ(said([&] { EXPECT_FALSE(object["spec"]["nodeName"].exists()); }), "");
  expect_said(".spec.containers[*].name",
              [&] { EXPECT_FALSE(object["spec"]["containers"][0]["name"].exists()); });
  expect_said(".status.podIP", [&] { EXPECT_FALSE(object["status"]["podIP"].exists()); });
  expect_said(".metadata.labels", [&] { EXPECT_FALSE(object.labels().exists()); });
  // The same for fields that this object never had.
  expect_said(".data", [&] { EXPECT_FALSE(object["data"].exists()); });
}

TEST(ProjectedObjectsTest, ADroppedFieldIsReported) {
  const Object object = decode(Projection::drop({"status.hostIP", "metadata.managedFields"}));
  expect_said(".status.hostIP", [&] { EXPECT_FALSE(object["status"]["hostIP"].exists()); });
  EXPECT_EQ(said([&] { EXPECT_FALSE(object["status"]["other"].exists()); }), "");
}

TEST(ProjectedObjectsTest, AnErrorOfAWatchIsNotProjected) {
  JsonDecoder decoder(Projection::keep({"spec"}));
  std::string error = R"({"type":"ERROR","object":{"kind":"Status","code":410}})";
  const auto event = decoder.decode_event(error);
  ASSERT_TRUE(event);
  EXPECT_EQ(said([&] { EXPECT_FALSE(event->object["reason"].exists()); }), "");
  std::string change = R"({"type":"ADDED","object":{"kind":"Pod","spec":{}}})";
  const auto added = decoder.decode_event(change);
  ASSERT_TRUE(added);
  expect_said(".reason", [&] { EXPECT_FALSE(added->object["reason"].exists()); });
}

TEST(ProjectedObjectsTest, AnObjectMayOutliveItsDecoder) {
  Object object;
  {
    const Projection projection = Projection::keep({"metadata.uid"});
    object = decode(projection);
  }
  expect_said(".spec", [&] { EXPECT_FALSE(object["spec"].exists()); });
  object = Object();
  EXPECT_EQ(said([] { EXPECT_FALSE(lookout::test::held(decode({}))["none"].exists()); }), "");
}

}  // namespace
}  // namespace lookout::api
