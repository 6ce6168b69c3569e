#include "lookout/controller/predicate.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "lookout/api/labels.h"
#include "lookout/controller/source.h"
#include "lookout/k8s/core/v1.h"
#include "tests/support/held.h"

namespace lookout::controller {
namespace {

TEST(PredicateTest, AnEmptyFunctionIsRejected) {
  using Map = k8s::core::v1::ConfigMap;
  EXPECT_THROW(predicate<Map>(std::function<bool(const Map&)>()), InvalidArgument);
  EXPECT_THROW(updated<Map>(std::function<bool(const Map&, const Map&)>()), InvalidArgument);
}

api::Object object(const std::string& metadata) {
  return api::Object::parse(R"({"kind":"ConfigMap","metadata":{"name":"m",)" + metadata + "}}");
}

Event update(const std::string& before, const std::string& after) {
  Event out;
  out.type = Event::Type::kUpdate;
  out.before = object(before);
  out.object = object(after);
  return out;
}
Event create(const std::string& metadata) {
  Event out;
  out.object = object(metadata);
  return out;
}

const char* const kPlain = R"("generation":1,"resourceVersion":"1")";
const char* const kStatus = R"("generation":1,"resourceVersion":"2")";
const char* const kSpec = R"("generation":2,"resourceVersion":"3")";
const char* const kLabelled = R"("generation":1,"resourceVersion":"4","labels":{"app":"web"})";
const char* const kAnnotated = R"("generation":1,"resourceVersion":"5","annotations":{"a":"b"})";

TEST(PredicateTest, ChangePredicatesFilterOnlyUpdates) {
  for (const auto& predicate : {resource_version_changed(), generation_changed(), labels_changed(),
                                annotations_changed()}) {
    EXPECT_TRUE(predicate(create(kPlain)));
    Event removed = create(kPlain);
    removed.type = Event::Type::kDelete;
    EXPECT_TRUE(predicate(removed));
    // A resync.
    EXPECT_FALSE(predicate(update(kPlain, kPlain)));
    // An update without a previous object.
    Event nothing = update(kPlain, kSpec);
    nothing.before = {};
    EXPECT_FALSE(predicate(nothing));
  }
  EXPECT_TRUE(resource_version_changed()(update(kPlain, kStatus)));
  EXPECT_FALSE(generation_changed()(update(kPlain, kStatus)));
  EXPECT_TRUE(generation_changed()(update(kPlain, kSpec)));
  EXPECT_FALSE(labels_changed()(update(kPlain, kSpec)));
  EXPECT_TRUE(labels_changed()(update(kPlain, kLabelled)));
  EXPECT_TRUE(annotations_changed()(update(kPlain, kAnnotated)));
  EXPECT_FALSE(annotations_changed()(update(kPlain, kLabelled)));
}

TEST(PredicateTest, AnUpdateWithoutAVersionIsUnchanged) {
  for (const auto& predicate : {resource_version_changed(), generation_changed(), labels_changed(),
                                annotations_changed()}) {
    Event lacks_new = update(kPlain, kSpec);
    lacks_new.object = {};
    EXPECT_FALSE(predicate(lacks_new));
    Event lacks_old = update(kPlain, kSpec);
    lacks_old.before = {};
    EXPECT_FALSE(predicate(lacks_old));
    Event lacks_both = update(kPlain, kSpec);
    lacks_both.before = lacks_both.object = {};
    EXPECT_FALSE(predicate(lacks_both));
  }
}

TEST(PredicateTest, LabelsAndAnnotationsAreComparedAsWholes) {
  for (const std::string field : {"labels", "annotations"}) {
    const auto predicate = field == "labels" ? labels_changed() : annotations_changed();
    const auto with = [&](const std::string& values) {
      return R"("resourceVersion":"1",")" + field + R"(":{)" + values + "}";
    };
    const std::string one = with(R"("a":"b")");
    EXPECT_FALSE(predicate(update(with(""), with(""))));
    EXPECT_FALSE(predicate(update(with(""), kPlain)));
    EXPECT_FALSE(predicate(update(one, one)));
    EXPECT_FALSE(predicate(update(with(R"("a":"b","c":"d")"), with(R"("c":"d","a":"b")"))));
    EXPECT_TRUE(predicate(update(one, with(R"("a":"c")"))));
    EXPECT_TRUE(predicate(update(one, with(R"("a":"b","c":"d")"))));
    EXPECT_TRUE(predicate(update(with(R"("a":"b","c":"d")"), one)));
  }
}

TEST(PredicateTest, AnotherObjectOfTheSameNameIsAChange) {
  const std::string before = R"("uid":"1","generation":1,"resourceVersion":"1")";
  const std::string after = R"("uid":"2","generation":1,"resourceVersion":"1")";
  for (const auto& predicate : {resource_version_changed(), generation_changed(), labels_changed(),
                                annotations_changed()}) {
    EXPECT_TRUE(predicate(update(before, after)));
    EXPECT_FALSE(predicate(update(before, before)));
  }
}

TEST(PredicateTest, AreCombined) {
  const auto either = generation_changed() || labels_changed();
  EXPECT_TRUE(either(update(kPlain, kSpec)));
  EXPECT_TRUE(either(update(kPlain, kLabelled)));
  EXPECT_FALSE(either(update(kPlain, kStatus)));
  const auto both = generation_changed() && labels_changed();
  EXPECT_FALSE(both(update(kPlain, kSpec)));
  EXPECT_TRUE(both(update(kPlain, R"("generation":2,"labels":{"a":"b"})")));
  const auto neither = !either;
  EXPECT_TRUE(neither(update(kPlain, kStatus)));
  EXPECT_FALSE(neither(create(kPlain)));
  // The default passes all.
  EXPECT_TRUE((Predicate() && generation_changed())(update(kPlain, kSpec)));
  EXPECT_FALSE((Predicate() && generation_changed())(update(kPlain, kStatus)));
  EXPECT_TRUE((Predicate() || generation_changed())(update(kPlain, kStatus)));
}

TEST(PredicateTest, SelectorsAndFunctionsTestTheNewObject) {
  const auto web = label_selector("app=web");
  EXPECT_TRUE(web(create(kLabelled)));
  EXPECT_FALSE(web(create(kPlain)));
  EXPECT_TRUE(web(update(kPlain, kLabelled)));
  EXPECT_FALSE(web(update(kLabelled, kPlain)));
  EXPECT_THROW(label_selector("a=b=c"), api::SelectorError);

  const auto mine = predicate<k8s::core::v1::ConfigMap>(
      [](const k8s::core::v1::ConfigMap& map) { return map.labels()["app"].as_string() == "web"; });
  EXPECT_TRUE(mine(create(kLabelled)));
  EXPECT_FALSE(mine(create(kPlain)));
  EXPECT_TRUE(mine(update(kPlain, kLabelled)));
  EXPECT_FALSE(mine(update(kLabelled, kPlain)));
  Event removed = create(kLabelled);
  removed.type = Event::Type::kDelete;
  EXPECT_TRUE(mine(removed));
  removed.object = object(kPlain);
  EXPECT_FALSE(mine(removed));
  const auto gained = updated<k8s::core::v1::ConfigMap>([](const auto& before, const auto& after) {
    return before.labels().size() < after.labels().size();
  });
  EXPECT_TRUE(gained(create(kPlain)));
  EXPECT_TRUE(gained(update(kPlain, kLabelled)));
  EXPECT_FALSE(gained(update(kLabelled, kPlain)));
}

TEST(EnqueueTest, DeduplicatesRequestsAndDropsThoseWithoutName) {
  Enqueue enqueue;
  enqueue({"ns", "a"});
  enqueue({"ns", "b"});
  enqueue({"ns", "a"});
  enqueue({"ns", lookout::test::held(object(kPlain)).labels()["website"]});
  ASSERT_EQ(enqueue.requests().size(), 2u);
  EXPECT_EQ(enqueue.requests()[1].key(), "ns/b");
  EXPECT_EQ(Request("", "node").key(), "node");
}

}  // namespace
}  // namespace lookout::controller
