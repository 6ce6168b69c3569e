// Custom resources that were written before their schema changed, or in another version.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <random>
#include <string>

#include "apiserver/json.h"
#include "apiserver/resources/structural_schema.h"
#include "tests/apiserver/client_fixture.h"
#include "tests/apiserver/http_client.h"
#include "tests/support/held.h"
#include "tests/support/matchers.h"

namespace lookout::apiserver {
namespace {

const api::Resource kThings{"example.com", "v1", "Thing", "things", true};
const api::Resource kSecondThings{"example.com", "v2", "Thing", "things", true};

/// A version whose spec has these properties.
std::string version_with(const char* name, bool stored, const std::string& properties) {
  return fmt::format(
      R"({{"name":"{}","served":true,"storage":{},"additionalPrinterColumns":)"
      R"([{{"name":"Color","type":"string","jsonPath":".spec.color"}}],)"
      R"("selectableFields":[{{"jsonPath":".spec.{}"}}],"schema":)"
      R"({{"openAPIV3Schema":{{"type":"object","properties":{{"spec":{{"type":"object",)"
      R"("properties":{{{}}}}}}}}}}}}})",
      name, stored, properties.starts_with(R"("color")") ? "color" : "size", properties);
}

Object things_with(const std::string& versions) {
  return from_json(
      R"({"metadata":{"name":"things.example.com"},"spec":{"group":"example.com",)"
      R"("scope":"Namespaced","names":{"plural":"things","kind":"Thing"},"versions":[)" +
      versions + "]}}");
}

Object thing_of(const char* version, const std::string& spec) {
  return from_json(fmt::format(
      R"({{"apiVersion":"example.com/{}","kind":"Thing","metadata":{{"name":"t"}},"spec":{}}})",
      version, spec));
}

class SchemaChanges : public ClientTest {
 protected:
  void define(const std::string& versions) const {
    all(kDefinitions).create(things_with(versions));
  }
  void redefine(const std::string& versions) const {
    const Object present = all(kDefinitions).get("things.example.com");
    all(kDefinitions)
        .update(changed(things_with(versions),
                        fmt::format(R"({{"metadata":{{"resourceVersion":"{}"}}}})",
                                    present.resource_version())));
  }
  std::string spec_of(const api::Resource& resource) const {
    return held(in(resource).get("t"))["spec"].to_json();
  }
};

TEST_F(SchemaChanges, AnObjectIsPrunedByItsSchema) {
  define(version_with("v1", true, R"("color":{"type":"string"},"size":{"type":"integer"})"));
  const Object made = in(kThings).create(thing_of("v1", R"({"size":1})"));
  redefine(version_with("v1", true, R"("color":{"type":"string","default":"red"})"));

  const Object shown = in(kThings).get("t");
  EXPECT_EQ(shown["spec"].to_json(), R"({"color":"red"})");
  EXPECT_EQ(shown.resource_version(), made.resource_version());
  EXPECT_EQ(held(in(kThings).list().items.at(0))["spec"].to_json(), R"({"color":"red"})");
  const auto event = in(kThings).watch({}).next();
  ASSERT_TRUE(event);
  EXPECT_EQ(event->object["spec"].to_json(), R"({"color":"red"})");
  const auto table = http(server_.port(), "GET", "/apis/example.com/v1/namespaces/default/things",
                          "", {{"Accept", "application/json;as=Table;v=v1;g=meta.k8s.io"}});
  EXPECT_THAT(table.body, HasSubstr(R"("cells":["t","red"])"));
  rest::ListOptions red;
  red.field_selector = "spec.color=red";
  EXPECT_EQ(in(kThings).list(red).items.size(), 1u);
}

TEST_F(SchemaChanges, AnUnchangedUpdateWritesThePrunedObject) {
  define(version_with("v1", true, R"("size":{"type":"integer"})"));
  const Object made = in(kThings).create(thing_of("v1", R"({"size":1})"));
  redefine(version_with("v1", true, R"("color":{"type":"string","default":"red"})"));
  const Object shown = in(kThings).get("t");
  const Object written = in(kThings).update(shown);
  EXPECT_NE(written.resource_version(), made.resource_version());
  EXPECT_EQ(written["metadata"]["generation"].as_int(), 1);
  // The second update writes nothing.
  EXPECT_EQ(in(kThings).update(written).resource_version(), written.resource_version());
  // A pruned field does not reappear when a schema has it again.
  redefine(version_with("v1", true, R"("size":{"type":"integer"},"color":{"type":"string"})"));
  EXPECT_EQ(spec_of(kThings), R"({"color":"red"})");
}

TEST_F(SchemaChanges, AVersionKeepsOnlyItsOwnFields) {
  define(version_with("v1", true, R"("color":{"type":"string","default":"red"})") + "," +
         version_with("v2", false, R"("size":{"type":"integer","default":2})"));
  in(kThings).create(thing_of("v1", R"({})"));
  EXPECT_EQ(spec_of(kThings), R"({"color":"red"})");
  EXPECT_EQ(spec_of(kSecondThings), R"({})");
  in(kThings).remove("t");
  // The object is stored in v1, which has no size.
  const Object made = in(kSecondThings).create(thing_of("v2", R"({"size":3})"));
  EXPECT_EQ(made["spec"].to_json(), R"({})");
  EXPECT_EQ(spec_of(kThings), R"({"color":"red"})");
}

TEST_F(SchemaChanges, AnUnchangedUpdateMigratesToTheStorageVersion) {
  const auto versions = [](bool second) {
    return version_with("v1", !second, R"("size":{"type":"integer"},"color":{"type":"string"})") +
           "," + version_with("v2", second, R"("color":{"type":"string","default":"blue"})");
  };
  define(versions(false));
  const Object made = in(kThings).create(thing_of("v1", R"({"size":1})"));
  redefine(versions(true));
  EXPECT_EQ(spec_of(kThings), R"({"size":1})");
  EXPECT_EQ(spec_of(kSecondThings), R"({})");
  const Object moved = in(kThings).update(in(kThings).get("t"));
  EXPECT_NE(moved.resource_version(), made.resource_version());
  EXPECT_EQ(spec_of(kThings), R"({"color":"blue"})");
}

// -------------------------------------------------------------------------------- random schemas

class RandomSchemas {
 public:
  explicit RandomSchemas(unsigned seed) : random_(seed) {}

  std::string schema(int depth) {
    std::string out = one_in(4) ? R"("nullable":true)" : R"("description":"")";
    if (one_in(4)) out += R"(,"x-kubernetes-preserve-unknown-fields":true)";
    if (one_in(6)) out += R"(,"x-kubernetes-embedded-resource":true)";
    if (depth > 0 && one_in(2)) {
      out += R"(,"properties":{)";
      for (const char* name : {"a", "b", "kind"}) {
        if (one_in(2)) out += fmt::format(R"("{}":{},)", name, schema(depth - 1));
      }
      out += R"("z":{}})";
    }
    if (depth > 0 && one_in(4)) out += R"(,"items":)" + schema(depth - 1);
    if (depth > 0 && one_in(4)) out += R"(,"additionalProperties":)" + schema(depth - 1);
    if (one_in(6)) out += R"(,"additionalProperties":true)";
    if (one_in(3)) out += R"(,"default":)" + value(depth);
    return "{" + out + "}";
  }

  std::string value(int depth) {
    switch (pick(depth > 0 ? 5 : 2)) {
      case 0:
        return "null";
      case 1:
        return "1";
      case 2:
        return fmt::format("[{},{}]", value(depth - 1), value(depth - 1));
      default:
        return fmt::format(R"({{"{}":{},"kind":{},"c":{}}})", one_in(2) ? "a" : "b",
                           value(depth - 1), value(depth - 1), value(depth - 1));
    }
  }

 private:
  unsigned pick(unsigned size) {
    return std::uniform_int_distribution<unsigned>(0, size - 1)(random_);
  }
  bool one_in(unsigned size) { return pick(size) == 0; }
  std::mt19937 random_;
};

TEST(SettledObjects, AreUnchangedByTheirSchema) {
  using namespace resources;
  RandomSchemas random(7);
  int settled = 0;
  int unchanged = 0;
  for (int i = 0; i < 5000; ++i) {
    const Object object = Object::parse(R"({"metadata":{"x":1},"a":)" + random.value(3) + "}");
    const Object schema = Object::parse(random.schema(3));
    json::Document document = object.to_document();
    prune(document, schema.body());
    const bool known = Object::from(document) == object;
    EXPECT_EQ(has_unknown_fields(object.body(), schema.body()), !known)
        << object.to_json() << " " << schema.to_json();
    set_schema_defaults(document, schema.body(), document.GetAllocator());
    const bool same = Object::from(document) == object;
    if (same) ++unchanged;
    if (!is_settled(object.body(), schema.body())) continue;
    ++settled;
    EXPECT_TRUE(same) << object.to_json() << " " << schema.to_json();
  }
  // Nearly all unchanged values are detected, and there are many of both kinds.
  EXPECT_GT(settled, 250);
  EXPECT_LT(unchanged, 4750);
  EXPECT_GT(settled * 10, unchanged * 9);
}

}  // namespace
}  // namespace lookout::apiserver
