#include "lookout/api/draft.h"

#include <gtest/gtest.h>
#include <rapidjson/document.h>

#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "lookout/api/merge_patch.h"
#include "lookout/api/multi_key_list_draft.h"
#include "lookout/api/set_draft.h"
#include "lookout/k8s/apps/v1_draft.h"
#include "lookout/k8s/coordination/v1_draft.h"
#include "lookout/k8s/core/v1_draft.h"
#include "tests/api/recordings.h"
#include "tests/support/held.h"

namespace lookout {
namespace {

using api::Object;
using api::ObjectDraft;

Object parse(std::string_view json) { return Object::parse(json); }

TEST(DraftTest, BuildsANewObject) {
  auto web = k8s::apps::v1::Deployment::draft("web", "shop");
  web.spec().set_replicas(3);
  web.spec().pod_template().spec().containers().append("web").set_image("web:2");
  web.metadata().labels().set("app", "web");
  const k8s::apps::v1::Deployment built = web.build();
  EXPECT_EQ(built, parse(R"({"apiVersion":"apps/v1","kind":"Deployment",
      "metadata":{"name":"web","namespace":"shop","labels":{"app":"web"}},
      "spec":{"replicas":3,"template":{"spec":{"containers":[{"name":"web","image":"web:2"}]}}}})"));
  EXPECT_EQ(built.key(), "shop/web");
  EXPECT_EQ(built.spec().replicas(), 3);
}

TEST(DraftTest, HasAnIdentity) {
  const k8s::core::v1::Pod pod(
      parse(R"({"metadata":{"name":"web","namespace":"shop","uid":"u","resourceVersion":"7"}})"));
  auto change = pod.edit();
  EXPECT_EQ(change.key(), "shop/web");
  EXPECT_EQ(change.ns(), "shop");
  EXPECT_EQ(change.name(), "web");
  EXPECT_EQ(change.uid(), "u");
  EXPECT_EQ(change.resource_version(), "7");
  EXPECT_FALSE(change.changed());
  change.metadata().set_name("api");
  EXPECT_EQ(change.name(), "api");
  EXPECT_EQ(k8s::core::v1::Node::draft("node-1").key(), "node-1");
  const ObjectDraft none;
  EXPECT_EQ(none.key(), "");
  const auto moved = std::move(change);
  EXPECT_EQ(moved.key(), "shop/api");
  EXPECT_THROW(static_cast<void>(change.name()),
               InvalidArgument);  // NOLINT(bugprone-use-after-move)
}

TEST(DraftTest, ReadsReturnWrittenValues) {
  const k8s::apps::v1::Deployment old(parse(R"({"metadata":{"name":"a"},"spec":{"replicas":1}})"));
  const auto change = old.edit();
  EXPECT_EQ(change.spec().replicas(), 1);
  change.spec().set_replicas(5);
  EXPECT_EQ(change.spec().replicas(), 5);
  change.spec().clear_replicas();
  EXPECT_EQ(change.spec().replicas(), std::nullopt);
  EXPECT_EQ(old.spec().replicas(), 1);
}

TEST(DraftTest, WithoutAChangeReturnsTheSameObject) {
  const Object pod = parse(R"({"metadata":{"name":"a"},"spec":{"nodeName":"n"}})");
  const ObjectDraft draft(pod);
  EXPECT_TRUE(draft.build().same(pod));
  EXPECT_EQ(draft.diff(), "{}");
  EXPECT_FALSE(draft.changed());
}

TEST(DraftTest, ReadingChangesNothing) {
  const k8s::core::v1::Pod pod(parse(R"({"metadata":{"name":"a"}})"));
  const auto draft = pod.edit();
  EXPECT_FALSE(draft.spec().security_context().se_linux_options());
  EXPECT_TRUE(draft.spec().containers().empty());
  EXPECT_EQ(draft.spec().containers().find("a"), std::nullopt);
  EXPECT_FALSE(draft.metadata().labels().contains("x"));
  EXPECT_FALSE(draft.changed());
  EXPECT_TRUE(draft.build().same(pod));
}

TEST(DraftTest, SettingAnEqualValueIsNoChange) {
  const k8s::apps::v1::Deployment old(parse(R"({"metadata":{"name":"a"},"spec":{"replicas":1}})"));
  const auto change = old.edit();
  change.spec().set_replicas(7);
  change.spec().set_replicas(1);
  EXPECT_EQ(change.diff(), "{}");
  EXPECT_TRUE(change.build().same(old));
}

TEST(DraftTest, DiffIsAMergePatchOfTheChanges) {
  const k8s::apps::v1::Deployment old(parse(
      R"({"metadata":{"name":"a","labels":{"x":"1","y":"2"}},"spec":{"replicas":1,"paused":true}})"));
  const auto change = old.edit();
  change.spec().set_replicas(5).clear_paused();
  change.metadata().labels().erase("x");
  change.metadata().labels().set("z", "3");
  EXPECT_EQ(
      parse(change.diff()),
      parse(R"({"metadata":{"labels":{"x":null,"z":"3"}},"spec":{"replicas":5,"paused":null}})"));
  EXPECT_EQ(parse(change.diff("spec")), parse(R"({"spec":{"replicas":5,"paused":null}})"));
  EXPECT_EQ(change.diff("status"), "{}");
}

TEST(DraftTest, AZeroThatTheServerOmitsIsNoChange) {
  const k8s::apps::v1::Deployment old(
      parse(R"({"metadata":{"name":"a"},"status":{"readyReplicas":1}})"));
  const auto change = old.edit();
  change.status().set_replicas(0).set_ready_replicas(1);
  EXPECT_FALSE(change.changed());
  EXPECT_EQ(change.diff("status"), "{}");
  change.status().set_ready_replicas(0);
  EXPECT_EQ(change.diff("status"), R"({"status":{"readyReplicas":0}})");
  EXPECT_EQ(change.diff_except("status"), "{}");
  // Where absent and zero differ, a zero is a change.
  change.spec().set_replicas(0);
  EXPECT_EQ(change.diff_except("status"), R"({"spec":{"replicas":0}})");
}

TEST(DraftTest, AZeroThatTheServerOmitsInAListIsNoChange) {
  const k8s::apps::v1::Deployment old(
      parse(R"({"metadata":{"name":"a"},"spec":{"template":{"spec":{"containers":[
          {"name":"a","image":"1"},{"name":"b","tty":true}]}}}})"));
  const auto change = old.edit();
  const auto containers = change.spec().pod_template().spec().containers();
  containers.get_or_append("a").set_image("1").set_tty(false);
  EXPECT_FALSE(change.changed());
  EXPECT_EQ(change.diff(), "{}");
  EXPECT_TRUE(change.build().same(old));
  containers.get_or_append("b").set_tty(false);
  EXPECT_TRUE(change.changed());
  containers.get_or_append("b").set_tty(true);
  EXPECT_EQ(change.diff(), "{}");
  containers.get_or_append("a").liveness_probe();
  EXPECT_EQ(change.diff(), "{}");
  containers.get_or_append("a").set_image("2");
  EXPECT_EQ(parse(change.diff()), parse(R"({"spec":{"template":{"spec":{"containers":[
      {"name":"a","image":"2","tty":false},{"name":"b","tty":true}]}}}})"));
}

TEST(DraftTest, ARewrittenEqualListIsNoChange) {
  const k8s::core::v1::Pod pod(parse(
      R"({"metadata":{"finalizers":["x"]},"spec":{"containers":[{"name":"a","image":"1"},{"name":"b"}]}})"));
  const auto change = pod.edit();
  const auto containers = change.spec().containers();
  containers.clear();
  containers.append("a").set_image("1").set_tty(false);
  EXPECT_TRUE(change.changed());
  containers.append("b");
  change.metadata().finalizers().assign(std::vector<std::string>{"x"});
  EXPECT_FALSE(change.changed());
  EXPECT_EQ(change.diff(), "{}");
  containers.append("c");
  EXPECT_TRUE(change.changed());
  containers.erase(2);
  containers[0].clear_image();
  EXPECT_TRUE(change.changed());

  ObjectDraft draft(parse(R"({"list":[{},{"a":null}],"more":{"a":1}})"));
  draft["list"].set_empty_list();
  draft["list"].append();
  EXPECT_TRUE(draft.changed());
  draft["list"].append()["a"].set(draft.original()["list"][1]["a"]);
  EXPECT_FALSE(draft.changed());
  draft["list"][1]["a"].remove();
  EXPECT_TRUE(draft.changed()) << "in a list, a null counts";
}

TEST(DraftTest, ARewrittenPartRemovesOtherFields) {
  const k8s::apps::v1::Deployment old(
      parse(R"({"metadata":{"name":"a"},"spec":{"replicas":1,"paused":true}})"));
  const auto change = old.edit();
  change.clear_spec();
  EXPECT_EQ(change.diff(), R"({"spec":null})");
  change.spec().set_replicas(2);
  EXPECT_EQ(parse(change.diff()), parse(R"({"spec":{"replicas":2,"paused":null}})"));
  EXPECT_EQ(change.build(), parse(R"({"metadata":{"name":"a"},"spec":{"replicas":2}})"));
  change.spec().set_replicas(1).set_paused(true).set_min_ready_seconds(0);
  EXPECT_EQ(change.diff(), "{}") << "the server leaves a zero out";
}

TEST(DraftTest, KeepsUnknownFields) {
  const k8s::core::v1::Pod pod(parse(
      R"({"metadata":{"name":"a"},"spec":{"nodeName":"n","novel":{"deep":[1,2]},"containers":[{"name":"c","novel":1}]}})"));
  const auto change = pod.edit();
  change.spec().set_node_name("m");
  change.spec().containers().get_or_append("c").set_image("i");
  change.spec()["more"].set(true);
  EXPECT_EQ(
      change.build(),
      parse(
          R"({"metadata":{"name":"a"},"spec":{"nodeName":"m","more":true,"novel":{"deep":[1,2]},"containers":[{"name":"c","image":"i","novel":1}]}})"));
}

TEST(DraftTest, ListsWithKeysAreAddressedByKey) {
  const k8s::core::v1::Pod pod(
      parse(R"({"spec":{"containers":[{"name":"a","image":"1"},{"name":"b","image":"2"}]}})"));
  const auto change = pod.edit();
  const auto containers = change.spec().containers();
  ASSERT_TRUE(containers.find("b"));
  containers.find("b")->set_image("3");
  containers.append("c").ports().append(80).set_name("http");
  EXPECT_TRUE(containers.erase_key("a"));
  EXPECT_FALSE(containers.erase_key("a"));
  EXPECT_EQ(containers.size(), 2u);
  EXPECT_EQ(
      parse(change.diff()),
      parse(
          R"({"spec":{"containers":[{"name":"b","image":"3"},{"name":"c","ports":[{"containerPort":80,"name":"http"}]}]}})"));
  EXPECT_EQ(containers[1].ports().find(80)->name(), "http");
}

TEST(DraftTest, ListsOfScalars) {
  auto pod = k8s::core::v1::Pod::draft("a", "b");
  const auto finalizers = pod.metadata().finalizers();
  finalizers.append("one");
  finalizers.append("two");
  finalizers.append("one");
  EXPECT_TRUE(finalizers.contains("two"));
  EXPECT_EQ(finalizers.erase_value("one"), 2u);
  EXPECT_EQ(finalizers.erase_value("one"), 0u);
  EXPECT_EQ(lookout::test::held(pod.build()).metadata().finalizers()[0], "two");
  EXPECT_EQ(lookout::test::held(pod.build()).metadata().finalizers().size(), 1u);
  finalizers.assign(std::vector<std::string>{"x", "y"});
  finalizers.set(1, "z");
  std::string all;
  for (const std::string_view each : finalizers) all += each;
  EXPECT_EQ(all, "xz");
  EXPECT_THROW(finalizers.set(2, "w"), InvalidArgument);
}

TEST(DraftTest, ScalarsOfEveryKind) {
  auto pod = k8s::core::v1::Pod::draft("a", "b");
  auto container = pod.spec().containers().append("c");
  container.resources().limits().set("cpu", "500m");
  container.resources().limits().set("memory", *api::Quantity::parse("1Gi"));
  EXPECT_THROW(container.resources().limits().set("cpu", "much"), InvalidArgument);
  container.liveness_probe().http_get().set_port("http").set_path("/live");
  container.readiness_probe().http_get().set_port(80);
  const auto built = pod.build();
  const auto read = built.spec().containers()[0];
  EXPECT_EQ(read.resources().limits()["cpu"].milli_value(), 500);
  EXPECT_EQ(read.liveness_probe().http_get().port().string_value(), "http");
  EXPECT_EQ(read.readiness_probe().http_get().port().int_value(), 80);

  auto secret = k8s::core::v1::Secret::draft("s", "b");
  secret.data().set("key", std::string_view("\0\xff", 2));
  EXPECT_EQ(lookout::test::held(secret.build()).data()["key"].decode(), std::string("\0\xff", 2));

  auto lease = k8s::coordination::v1::Lease::draft("l", "b");
  const api::Time time = *api::parse_time("2026-11-20T11:14:57.123456Z");
  lease.spec().set_renew_time(time);
  EXPECT_EQ(lookout::test::held(lease.build())["spec"]["renewTime"].as_string(),
            "2026-11-20T11:14:57.123456Z");
  EXPECT_EQ(lease.spec().renew_time(), time);
}

TEST(DraftTest, AStructureOfAnotherObjectIsCopied) {
  const k8s::core::v1::Pod pod(parse(R"({"spec":{"nodeName":"n","containers":[{"name":"a"}]}})"));
  auto web = k8s::apps::v1::Deployment::draft("web", "shop");
  web.spec().pod_template().set_spec(pod.spec());
  web.spec().pod_template().spec().clear_node_name();
  EXPECT_EQ(lookout::test::held(web.build())["spec"],
            lookout::test::held(
                parse(R"({"spec":{"template":{"spec":{"containers":[{"name":"a"}]}}}})"))["spec"]);
}

TEST(DraftTest, RemovedPartsStaySafeToUse) {
  const k8s::core::v1::Pod pod(parse(R"({"spec":{"containers":[{"name":"a"},{"name":"b"}]}})"));
  auto change = pod.edit();
  const auto first = change.spec().containers()[0];
  const auto resources = first.resources();
  change.spec().containers().erase(0);
  first.set_image("nowhere");
  resources.limits().set("cpu", "1");
  change.clear_spec();
  first.set_image("nowhere");
  EXPECT_EQ(change.build(), parse("{}"));
}

TEST(DraftTest, PartsFollowADraftThatMoves) {
  auto web = k8s::apps::v1::Deployment::draft("web", "shop");
  const auto spec = web.spec();
  const auto moved = std::move(web);
  spec.set_replicas(4);
  EXPECT_EQ(lookout::test::held(moved.build()).spec().replicas(), 4);
}

TEST(DraftTest, ADraftThatWasMovedIsNotRead) {
  auto web = k8s::apps::v1::Deployment::draft("web", "shop");
  const auto moved = std::move(web);
  // NOLINTBEGIN(bugprone-use-after-move): on purpose.
  EXPECT_THROW(web.diff(), InvalidArgument);
  EXPECT_THROW(web.diff("status"), InvalidArgument);
  EXPECT_THROW(web.diff_except("status"), InvalidArgument);
  EXPECT_THROW(web.changed(), InvalidArgument);
  EXPECT_THROW(static_cast<const api::ObjectDraft&>(web).original(), InvalidArgument);
  EXPECT_THROW(static_cast<const api::ObjectDraft&>(web).build(), InvalidArgument);
  // NOLINTEND(bugprone-use-after-move)
}

TEST(DraftTest, RejectsInvalidValues) {
  auto map = k8s::core::v1::ConfigMap::draft("m", "b");
  EXPECT_THROW(map.data().set("key", "\xff"), InvalidArgument);
  EXPECT_THROW(map["number"].set(std::numeric_limits<double>::infinity()), InvalidArgument);
  EXPECT_THROW(map.append(), InvalidArgument);
  EXPECT_THROW(map.set("text"), InvalidArgument);
  EXPECT_THROW(map.remove(), InvalidArgument);
  EXPECT_EQ(map.build().name(), "m");
}

TEST(DraftTest, RejectsInvalidNames) {
  auto map = k8s::core::v1::ConfigMap::draft("m", "b");
  EXPECT_THROW(map.data().set("caf\xe9", "v"), InvalidArgument);
  EXPECT_THROW(map.metadata().labels().set("\xc0\x80", "v"), InvalidArgument);
  EXPECT_THROW(map["\xff"].set(1), InvalidArgument);
  EXPECT_THROW(map["\xff"]["a"].set_empty_object(), InvalidArgument);
  EXPECT_THROW(map["\xff"].append(), InvalidArgument);
  EXPECT_THROW(api::ListDraft<std::int64_t>(map["\xff"]).append(1), InvalidArgument);
  EXPECT_THROW(map["list"].append()["\xff"].set(1), InvalidArgument);
  EXPECT_FALSE(map.data().contains("caf\xe9"));
  EXPECT_FALSE(map.data().erase("caf\xe9"));
  map.data().set("caf\u00e9", "v");
  const Object built = map.build();
  EXPECT_EQ(parse(built.to_json()), built);
  EXPECT_EQ(built["data"].size(), 1u);
}

TEST(DraftTest, ElementsAreFoundByAnyInteger) {
  ObjectDraft draft(parse(R"({"list":[1,2,3]})"));
  const api::DraftPart list = draft["list"];
  EXPECT_EQ(list[0].as<std::int64_t>(), 1);
  EXPECT_EQ(list[1u].as<std::int64_t>(), 2);
  EXPECT_EQ(list[std::int64_t{2}].as<std::int64_t>(), 3);
  EXPECT_THROW(list[-1], InvalidArgument);
  EXPECT_THROW(list[3], InvalidArgument);
  list[0].set(7);
  EXPECT_EQ(draft.diff(), R"({"list":[7,2,3]})");
}

TEST(DraftTest, AFailedWriteChangesNothing) {
  const k8s::core::v1::Pod pod(parse(R"({"metadata":{"name":"a","finalizers":["x"]}})"));
  const auto change = pod.edit();
  const auto metadata = change.metadata();
  constexpr std::string_view kBad = "\xff";
  EXPECT_THROW(metadata.finalizers().append(kBad), InvalidArgument);
  EXPECT_THROW(metadata.finalizers().set(0, kBad), InvalidArgument);
  EXPECT_THROW(metadata.finalizers().assign(std::vector<std::string_view>{"y", kBad}),
               InvalidArgument);
  EXPECT_THROW(api::SetDraft<std::string_view>(metadata.finalizers()).insert(kBad),
               InvalidArgument);
  EXPECT_THROW(metadata.labels().set("l", kBad), InvalidArgument);
  EXPECT_THROW(change.spec().containers().append(kBad), InvalidArgument);
  EXPECT_THROW(change.spec().containers().get_or_append(kBad), InvalidArgument);
  const api::MultiKeyListDraft<api::DraftPart, std::int64_t, std::string_view> ports(
      change["ports"], {"port", "protocol"});
  EXPECT_THROW(ports.append(80, kBad), InvalidArgument);
  EXPECT_FALSE(change.changed());
  EXPECT_EQ(change.diff(), "{}");
  EXPECT_TRUE(change.build().same(pod));
  ports.get_or_append(80, "TCP")["name"].set("http");
  EXPECT_EQ(parse(change.diff()),
            parse(R"({"ports":[{"port":80,"protocol":"TCP","name":"http"}]})"));
}

TEST(DraftTest, AWriteCreatesItsParents) {
  ObjectDraft draft(parse(R"({"a":"text","list":[1,2]})"));
  draft["a"]["b"]["c"].set(1);
  draft["list"][1].set("two");
  draft["list"].append().set(true);
  draft["more"].append()["x"].set(1.5);
  draft["empty"].append();
  EXPECT_EQ(draft.build(),
            parse(R"({"a":{"b":{"c":1}},"list":[1,"two",true],"more":[{"x":1.5}],"empty":[{}]})"));
  EXPECT_EQ(draft["a"].value().to_json(), R"({"b":{"c":1}})");
  EXPECT_EQ(draft["list"].size(), 3u);
  EXPECT_EQ(draft["a"].names(), std::vector<std::string>{"b"});
}

/// Changes a random field below `part`.
void change_at_random(const api::DraftPart& part, std::mt19937& random) {
  const auto roll = [&](std::size_t below) { return random() % below; };
  const auto kind = part.value().kind();
  const std::size_t size = part.size();
  if (kind == api::Value::Kind::kObject && size > 0) {
    const auto names = part.names();
    const std::string& name = names[roll(names.size())];
    switch (roll(6)) {
      case 0:
        return part[name].remove();
      case 1:
        return part[name].set("other");
      case 2:
        return part["new"].set(static_cast<int>(roll(9)));
      default:
        return change_at_random(part[name], random);
    }
  }
  if (kind == api::Value::Kind::kArray) {
    if (size == 0 || roll(4) == 0) return part.append()["novel"].set(1);
    if (roll(4) == 0) return part.erase(roll(size));
    return change_at_random(part[roll(size)], random);
  }
}

TEST(DraftTest, AListReplacesMembers) {
  ObjectDraft draft(parse(R"({"spec":{"a":1,"b":2}})"));
  const auto held = draft["spec"]["a"];
  draft["spec"].append().set("x");
  EXPECT_FALSE(draft["spec"]["a"]);
  held.set(3);
  EXPECT_EQ(draft.build(), parse(R"({"spec":["x"]})"));
  draft["spec"]["c"].set(4);
  EXPECT_EQ(draft.build(), parse(R"({"spec":{"c":4}})"));
  EXPECT_EQ(parse(draft.diff()), parse(R"({"spec":{"a":null,"b":null,"c":4}})"));
}

TEST(DraftTest, ApplyingTheDiffGivesTheObject) {
  std::mt19937 random(7);
  for (const std::string& json : api::test::all_recorded_items()) {
    const Object object = parse(json);
    ObjectDraft draft(object);
    for (int i = 0; i < 12; ++i) {
      const auto names = draft.names();
      const std::string& name = names[random() % names.size()];
      change_at_random(draft[name], random);
    }
    const Object built = draft.build();
    EXPECT_EQ(Object::parse(built.to_json()), built);
    rapidjson::Document patched = object.to_document();
    const rapidjson::Document patch = parse(draft.diff()).to_document();
    api::apply_merge_patch(patched, patch, patched.GetAllocator());
    EXPECT_EQ(Object::from(patched), built) << draft.diff();
    // The way back, through another draft, gives the same bytes.
    const ObjectDraft back(built);
    for (const auto& [name, member] : object.body().members()) back[name].set(member);
    for (const std::string& name : back.names()) {
      if (!object.body().contains(name)) back[name].remove();
    }
    EXPECT_EQ(back.build(), object);
  }
}

/// Assignment to elements does not compile, because it would write nothing.
template <class Container, class Key, class Given>
constexpr bool kCanAssign =
    requires(const Container& container, Key key, const Given& given) { container[key] = given; };
static_assert(!kCanAssign<api::MapDraft<std::string_view>, const char*, const char*>);
static_assert(!kCanAssign<api::ListDraft<std::string_view>, int, const char*>);
static_assert(!kCanAssign<api::MapView<std::string_view>, const char*, const char*>);
static_assert(!kCanAssign<api::ListView<std::string_view>, int, const char*>);
static_assert(!kCanAssign<ObjectDraft, const char*, api::DraftPart>);
static_assert(std::is_copy_assignable_v<api::DraftPart>);

/// The same for the accessors of generated drafts and views.
template <class Part>
constexpr bool kHasAssignableAccessors =
    requires(const Part& spec) { spec.node_name() = "x"; } ||
    requires(const Part& spec) { spec.priority() = 1; } ||
    requires(const Part& spec) { spec.dns_config() = spec.dns_config(); } ||
    requires(const Part& spec) { spec.containers() = spec.containers(); };
static_assert(!kHasAssignableAccessors<k8s::core::v1::PodSpecDraft>);
static_assert(!kHasAssignableAccessors<k8s::core::v1::PodSpec>);

}  // namespace
}  // namespace lookout
