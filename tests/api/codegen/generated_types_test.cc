// Included first, to check that the header is self-contained.
#include "acme/workshops.h"
//
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "lookout/apiserver/server.h"
#include "lookout/base/yaml_tree.h"
#include "lookout/informer/shared_informer_factory.h"
#include "lookout/rest/client.h"
#include "lookout/rest/subresources.h"
#include "tests/support/held.h"

namespace lookout {
namespace {

using acme::v1::Guild;
using acme::v1::Workshop;
using acme::v1::WorkshopDraft;

static_assert(api::ResourceObject<Workshop>);
static_assert(Workshop::kResource.namespaced && !Guild::kResource.namespaced);
static_assert(acme::v1beta1::Workshop::kResource.version == "v1beta1");

api::Time at(const char* text) { return *api::parse_time(text); }

Workshop read(const std::string& spec) {
  return Workshop(api::Object::parse(
      R"({"apiVersion":"craft.example.com/v1","kind":"Workshop","metadata":{"name":"a","namespace":"n"},"spec":)" +
      spec + "}"));
}

/// The patch of a function's changes to an empty workshop's spec.
template <class Change>
std::string written(const Change& change) {
  const WorkshopDraft draft = read("{}").edit();
  change(draft.spec());
  return draft.diff();
}

TEST(GeneratedTypes, ReadScalars) {
  const Workshop w = read(R"({"title":"t","benches":3,"openedAt":"2024-01-02T03:04:05Z",
      "closedAt":null,"total":9007199254740993,"ratio":0.5,"heated":true,"seal":"aGk=",
      "port":"http","memory":"1Gi","limits":{"cpu":"500m"},"level":-1})");
  const auto spec = w.spec();
  EXPECT_EQ(spec.title(), "t");
  EXPECT_EQ(spec.benches(), 3);
  EXPECT_EQ(spec.opened_at(), at("2024-01-02T03:04:05Z"));
  EXPECT_EQ(spec.closed_at(), std::nullopt);
  EXPECT_EQ(spec.total(), 9007199254740993);
  EXPECT_EQ(spec.ratio(), 0.5);
  EXPECT_TRUE(spec.heated().value_or(false));
  EXPECT_EQ(spec.seal().decode(), "hi");
  EXPECT_EQ(spec.port().string_value(), "http");
  EXPECT_EQ(spec.memory(), api::Quantity::parse("1Gi"));
  EXPECT_EQ(spec.limits()["cpu"], api::Quantity::parse("500m"));
  EXPECT_EQ(spec.level(), acme::v1::WorkshopSpecLevel::kMinus1);
}

TEST(GeneratedTypes, AbsentFieldsReadAsEmpty) {
  const Workshop w = read("{}");
  EXPECT_EQ(w.spec().title(), "");
  EXPECT_EQ(w.spec().benches(), 0);  // the schema requires it
  EXPECT_EQ(w.spec().total(), std::nullopt);
  EXPECT_FALSE(w.spec().heated().has_value());
  EXPECT_FALSE(w.spec().half());
  EXPECT_TRUE(w.spec().tools().empty());
  EXPECT_EQ(w.status().conditions().size(), 0u);
}

TEST(GeneratedTypes, ReadNestedFields) {
  const Workshop w = read(R"({"grid":[[1,2],[3]],"cells":[[{"colour":"red"}]],
      "drawers":{"top":{"depth":2,"labels":{"a":"b"}}},"shelves":{"low":["x","y"]},
      "free":{"a":[1]},"anything":7,"half":{"known":"k","other":1},"part":{"kind":"Part","metadata":{"name":"p"},"spec":{"size":4}},
      "stamps":["2024-01-02T03:04:05Z"],"ports":[80,"http"],"things":[{"a":1}],
      "selector":{"matchLabels":{"app":"web"}}})");
  const auto spec = w.spec();
  EXPECT_EQ(spec.grid()[0][1], 2);
  EXPECT_EQ(spec.cells()[0][0].colour(), "red");
  EXPECT_EQ(spec.drawers()["top"].depth(), 2);
  EXPECT_EQ(spec.drawers()["top"].labels()["a"], "b");
  EXPECT_EQ(spec.shelves()["low"][1], "y");
  EXPECT_EQ(spec.free()["a"][0].as_int(), 1);
  EXPECT_EQ(spec.anything().as_int(), 7);
  EXPECT_EQ(spec.half().known(), "k");
  EXPECT_EQ(spec.half().as_value()["other"].as_int(), 1);
  EXPECT_EQ(spec.part().kind(), "Part");
  EXPECT_EQ(spec.part().metadata().name(), "p");
  EXPECT_EQ(spec.part().spec().size(), 4);
  EXPECT_EQ(spec.stamps()[0], at("2024-01-02T03:04:05Z"));
  EXPECT_EQ(spec.ports()[0].int_value(), 80);
  EXPECT_EQ(spec.things()[0]["a"].as_int(), 1);
  EXPECT_EQ(spec.selector().match_labels()["app"], "web");
}

TEST(GeneratedTypes, ReadFieldsOfAnyName) {
  using Texts = std::vector<std::string_view>;
  const Workshop w = read(R"({"class":"1","namespace":"2","int":3,"errno":"4","major":"5",
      "setTitle":"6","clearTitle":"7","$ref":"8","x-dashed":"9","dotted.name":"10","2fa":true,
      "fooBar":"11","foobar":"12","foo_bar":"13","FooBar":"14","qu\"ote":"15","asValue":"16",
      "draft":{"text":"17"},"list":{"text":"18"},"naïve":"19","template":{"kind":"Pod"},"title":"20",
      "_foobar":"21","typeof":"22"})");
  const auto spec = w.spec();
  const Texts keywords = {spec.class_(), spec.namespace_(), spec.errno_(), spec.major_(),
                          spec.typeof_()};
  EXPECT_EQ(keywords, (Texts{"1", "2", "4", "5", "22"}));
  EXPECT_EQ(spec.int_(), 3);
  EXPECT_EQ(spec.template_()["kind"].as_string(), "Pod");
  // Names that functions of drafts and views have.
  const Texts functions = {spec.set_title_2(),  spec.clear_title_2(), spec.as_value_2(),
                           spec.draft().text(), spec.list().text(),   spec.title()};
  EXPECT_EQ(functions, (Texts{"6", "7", "16", "17", "18", "20"}));
  const Texts no_identifiers = {spec.dollar_ref(), spec.x_dashed(), spec.dotted_name(),
                                spec.qu_ote(), spec.na_ve()};
  EXPECT_EQ(no_identifiers, (Texts{"8", "9", "10", "15", "19"}));
  EXPECT_TRUE(spec.field_2fa().value_or(false));
  const Texts alike = {spec.foo_bar(), spec.foobar(), spec.foo_bar_2(), spec.foo_bar_3(),
                       spec.foobar_2()};
  EXPECT_EQ(alike, (Texts{"11", "12", "13", "14", "21"}));
}

TEST(GeneratedTypes, AFieldNamedLikeAMemberFunctionDoesNotHideIt) {
  const Workshop w(
      api::Object::parse(R"({"kind":"Workshop","metadata":{"name":"a"},"name":"other"})"));
  EXPECT_EQ(w.name(), "a");
  EXPECT_EQ(w.name_2(), "other");
}

TEST(GeneratedTypes, EnumerationsAreConstants) {
  using Noise = acme::v1::WorkshopSpecNoise;
  static_assert(std::is_same_v<decltype(Noise::kLoud), const std::string_view>);
  EXPECT_EQ(Noise::kLoud, "loud");
  EXPECT_EQ(Noise::kEmpty, "");
  EXPECT_EQ(Noise::kMinus1, "-1");
  EXPECT_EQ(Noise::kQuOte, "qu\"ote");
  EXPECT_EQ(Noise::kQuiet_2, "Quiet");
  EXPECT_EQ(Noise::kA, "a?\?/");
  EXPECT_EQ(Noise::kOther, std::string_view("\0", 1));
  EXPECT_EQ(acme::v1::WorkshopSpecLevel::k10, 10);
  EXPECT_EQ(acme::v1::WorkshopSpecDays::kTue, "Tue");
}

TEST(GeneratedTypes, DraftsWriteScalars) {
  EXPECT_EQ(written([](const auto& spec) {
              spec.set_title("t").set_benches(0).set_opened_at(at("2024-01-02T03:04:05Z"));
              spec.set_seal("hi").set_port(80).set_memory("1Gi").set_set_title_2("x");
            }),
            R"({"spec":{"port":80,"title":"t","benches":0,)"
            R"("memory":"1Gi","openedAt":"2024-01-02T03:04:05Z","seal":"aGk=","setTitle":"x"}})");
  EXPECT_THROW(written([](const auto& spec) { spec.set_memory("much"); }), InvalidArgument);
  const WorkshopDraft draft = read(R"({"title":"t","total":1})").edit();
  draft.spec().clear_total();
  EXPECT_EQ(draft.diff(), R"({"spec":{"total":null}})");
  EXPECT_EQ(draft.spec().title(), "t");
}

TEST(GeneratedTypes, DraftsWriteNestedFields) {
  EXPECT_EQ(written([](const auto& spec) {
              spec.grid().append().append(1);
              spec.cells().append().append().set_colour("red");
              spec.drawers()["top"].set_depth(2);
              spec.shelves()["low"].append("x");
            }),
            R"({"spec":{"cells":[[{"colour":"red"}]],"drawers":{"top":{"depth":2}},)"
            R"("grid":[[1]],"shelves":{"low":["x"]}}})");
  EXPECT_EQ(written([](const auto& spec) {
              spec.free()["a"]["b"].set(1);
              spec.things().append()["c"].set("d");
              spec.ports().append(80);
              spec.ports().append("http");
              spec.stamps().append(at("2024-01-02T03:04:05Z"));
              spec.seals().append("hi");
              spec.limits().set("cpu", "1");
            }),
            R"({"spec":{"limits":{"cpu":"1"},"ports":[80,"http"],"free":{"a":{"b":1}},)"
            R"("seals":["aGk="],"stamps":["2024-01-02T03:04:05Z"],"things":[{"c":"d"}]}})");
}

TEST(GeneratedTypes, DraftsFindElementsByTheirKeys) {
  const WorkshopDraft draft =
      read(R"({"tools":[{"name":"saw","count":1}],"listeners":[{"port":80,"protocol":"TCP"},
              {"port":80,"protocol":"UDP"}],"makers":["ann"]})")
          .edit();
  const auto tools = draft.spec().tools();
  tools.find("saw")->set_count(2);
  tools.get_or_append("axe").set_count(1);
  EXPECT_FALSE(tools.contains("file"));
  const auto listeners = draft.spec().listeners();
  listeners.find(80, "UDP")->set_open(true);
  EXPECT_FALSE(listeners.find(443, "TCP").has_value());
  EXPECT_TRUE(listeners.erase_key(80, "TCP"));
  EXPECT_FALSE(listeners.erase_key(80, "TCP"));
  EXPECT_EQ(listeners.get_or_append(80, "UDP").open(), true);
  listeners.append(443, "TCP");
  EXPECT_TRUE(draft.spec().makers().insert("bob"));
  EXPECT_FALSE(draft.spec().makers().insert("ann"));
  const auto conditions = draft.status().conditions();
  conditions.get_or_append("Ready").set_status("True");
  EXPECT_TRUE(conditions.contains("Ready"));
  EXPECT_EQ(
      draft.diff(),
      R"({"spec":{"listeners":[{"protocol":"UDP","port":80,"open":true},{"protocol":"TCP","port":443}],)"
      R"("makers":["ann","bob"],"tools":[{"name":"saw","count":2},{"name":"axe","count":1}]},)"
      R"("status":{"conditions":[{"type":"Ready","status":"True"}]}})");
}

TEST(GeneratedTypes, DraftsFindElementsOfListsInMapsAndLists) {
  const WorkshopDraft draft =
      read(R"({"toolboxes":{"red":[{"name":"saw","count":1}]},"teams":{"a":["ann"]}})").edit();
  const auto toolboxes = draft.spec().toolboxes();
  toolboxes["red"].find("saw")->set_count(2);
  toolboxes["blue"].get_or_append("axe");
  const auto round = draft.spec().rounds().append();
  round.get_or_append("Mon", 8).set_done(true);
  EXPECT_TRUE(draft.spec().rounds()[0].contains("Mon", 8));
  EXPECT_TRUE(draft.spec().teams()["a"].insert("bob"));
  EXPECT_FALSE(draft.spec().teams()["a"].insert("ann"));
  EXPECT_EQ(api::Object::parse(draft.diff()),
            api::Object::parse(R"({"spec":{"rounds":[[{"day":"Mon","hour":8,"done":true}]],
                "teams":{"a":["ann","bob"]},
                "toolboxes":{"red":[{"name":"saw","count":2}],"blue":[{"name":"axe"}]}}})"));
}

TEST(GeneratedTypes, KindsMayBeNamedLikeTheBasesOfDrafts) {
  EXPECT_EQ(acme::v2::DraftPart_2::draft("a").set_text("x").build().text(), "x");
  EXPECT_EQ(acme::v2::ObjectDraft_2::draft("a").set_text("x").build().kind(), "ObjectDraft");
}

TEST(GeneratedTypes, VersionsWithTheSameNameInCppAreDifferentTypes) {
  EXPECT_EQ(acme::v2_a::DraftPart_2::kResource.version, "v2-a");
  EXPECT_EQ(acme::v2_a::DraftPart_3::kResource.version, "v2--a");
}

TEST(GeneratedTypes, DraftsKeepUnknownFields) {
  const WorkshopDraft draft = read(R"({"unknown":[1,{"a":null}],"title":"t"})").edit();
  draft.spec().set_title("u");
  EXPECT_EQ(lookout::test::held(draft.build()).spec().as_value()["unknown"].to_json(),
            R"([1,{"a":null}])");
}

TEST(GeneratedTypes, ListsAreTyped) {
  const acme::v1::WorkshopList list(api::Object::parse(
      R"({"kind":"WorkshopList","metadata":{"resourceVersion":"7"},"items":[{"metadata":{"name":"a"},"spec":{"title":"t"}}]})"));
  EXPECT_EQ(list.metadata().resource_version(), "7");
  EXPECT_EQ(list.items()[0].metadata().name(), "a");
  EXPECT_EQ(list.items()[0].spec().title(), "t");
}

/// A server with the CRDs.
class GeneratedTypesAtAServer : public testing::Test {
 protected:
  GeneratedTypesAtAServer() : client_(server_.client_config()) {
    std::ifstream in(LOOKOUT_WORKSHOPS);
    const std::string text{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
    const auto definitions =
        client_.resource(api::Resource("apiextensions.k8s.io", "v1", "CustomResourceDefinition",
                                       "customresourcedefinitions", false));
    for (std::size_t start = 0; start < text.size();) {
      const std::size_t end = std::min(text.find("\n---\n", start), text.size());
      const YamlTree tree(text.substr(start, end - start));
      const auto document = api::Object::parse(to_json(tree.root()));
      start = end + 5;
      if (document.kind() == "CustomResourceDefinition") definitions.create(document);
      for (const api::Value item : document["items"].elements())
        definitions.create(api::Object::parse(item.to_json()));
    }
  }

  apiserver::Server server_;
  rest::Client client_;
};

TEST_F(GeneratedTypesAtAServer, TypedClientsSupportAllVerbs) {
  const auto workshops = client_.resource<Workshop>("default");
  auto draft = Workshop::draft("a", "default");
  draft.spec().set_title("t").set_benches(1).set_opened_at(at("2024-01-02T03:04:05Z"));
  draft.metadata().labels().set("app", "craft");
  const Workshop made = workshops.create(draft);
  EXPECT_EQ(made.spec().title(), "t");
  EXPECT_EQ(made.labels()["app"].as_string(), "craft");

  const auto change = made.edit();
  change.spec().set_benches(2);
  EXPECT_EQ(lookout::test::held(workshops.patch(change)).spec().benches(), 2);

  const auto status = workshops.get("a").edit();
  status.status().set_mood("good").set_benches(1);
  EXPECT_EQ(lookout::test::held(workshops.patch_status(status)).status().mood(), "good");

  rest::set_scale(workshops.dynamic(), "a", 5);
  EXPECT_EQ(lookout::test::held(workshops.get("a")).spec().benches(), 5);

  const auto list = workshops.list();
  ASSERT_EQ(list.items.size(), 1u);
  EXPECT_EQ(list.items[0].spec().benches(), 5);
  EXPECT_EQ(lookout::test::held(client_.resource<acme::v1beta1::Workshop>("default").get("a"))
                .spec()
                .title(),
            "t");
  workshops.remove("a");
  EXPECT_FALSE(workshops.find("a"));
}

TEST_F(GeneratedTypesAtAServer, ClusterScopedKindsHaveNoNamespace) {
  const auto guilds = client_.resource<Guild>();
  const auto draft = Guild::draft("masons");
  draft["anything"].set("goes");
  EXPECT_EQ(lookout::test::held(guilds.create(draft))["anything"].as_string(), "goes");
}

TEST_F(GeneratedTypesAtAServer, InformersAndListersReturnThem) {
  const auto workshops = client_.resource<Workshop>("default");
  auto draft = Workshop::draft("a", "default");
  draft.spec().set_title("t").set_benches(1).set_opened_at(at("2024-01-02T03:04:05Z"));
  workshops.create(draft);
  informer::SharedInformerFactory factory{client_};
  const auto informer = factory.informer<Workshop>();
  factory.start();
  ASSERT_TRUE(factory.wait_for_cache_sync());
  const Workshop found = informer.lister().ns("default").get("a");
  ASSERT_TRUE(found);
  EXPECT_EQ(found.spec().title(), "t");
}

}  // namespace
}  // namespace lookout
