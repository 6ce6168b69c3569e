#include "lookout/api/projection.h"

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "lookout/api/error.h"
#include "lookout/api/json.h"
#include "tests/api/recordings.h"
#include "tests/support/matchers.h"

namespace lookout::api {
namespace {

using namespace std::string_view_literals;

Object decode(const Projection& projection, std::string_view text) {
  JsonDecoder decoder(projection);
  std::string copy(text);
  Object object = decoder.decode(copy);
  EXPECT_TRUE(object) << decoder.error();
  return object;
}

std::string error_of(const Projection& projection, std::string_view text) {
  JsonDecoder decoder(projection);
  std::string copy(text);
  decoder.decode(copy);
  return decoder.error();
}

constexpr const char* kWholePod =
    R"({"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"b","uid":"u","resourceVersion":"7",)"
    R"("labels":{"app":"web"},"annotations":{"example.com/a.b":"x","it's":"y"},"managedFields":[{"f":{"f:x":{}}}]},)"
    R"("spec":{"nodeName":"n","containers":[{"name":"c","image":"i","ports":[{"name":"http","containerPort":80}]},)"
    R"({"name":"d","image":"j"}],"matrix":[[{"x":1,"y":2}],[{"x":3}]]},"status":{"phase":"Running"},"extra":1})";

constexpr const char* kIdentity =
    R"("kind":"Pod","apiVersion":"v1","metadata":{"name":"a","namespace":"b","uid":"u","resourceVersion":"7")";

TEST(ProjectionTest, KeepsNamedFields) {
  const std::string annotations = R"(,"annotations":{})";  // on the path to a bookmark's annotation
  const struct {
    std::initializer_list<std::string_view> paths;
    std::string json;
  } cases[] = {
      {{}, "{" + (kIdentity + annotations) + "}}"},
      {{"spec.nodeName"}, "{" + (kIdentity + annotations) + R"(},"spec":{"nodeName":"n"}})"},
      {{"metadata.labels", "status"},
       "{" + (kIdentity + annotations) +
           R"(,"labels":{"app":"web"}},"status":{"phase":"Running"}})"},
      {{"metadata.labels.app"}, "{" + (kIdentity + annotations) + R"(,"labels":{"app":"web"}}})"},
      {{"metadata.labels.none"}, "{" + (kIdentity + annotations) + R"(,"labels":{}}})"},
      // Into every element of an array, with and without explicit brackets.
      {{"spec.containers.ports.name"},
       "{" + (kIdentity + annotations) +
           R"(},"spec":{"containers":[{"ports":[{"name":"http"}]},{}]}})"},
      {{"spec.containers[*].ports[*].name"},
       "{" + (kIdentity + annotations) +
           R"(},"spec":{"containers":[{"ports":[{"name":"http"}]},{}]}})"},
      {{"spec.matrix.x"},
       "{" + (kIdentity + annotations) + R"(},"spec":{"matrix":[[{"x":1}],[{"x":3}]]}})"},
      // Names that need quotes.
      {{"metadata.annotations['example.com/a.b']"},
       "{" + std::string(kIdentity) + R"(,"annotations":{"example.com/a.b":"x"}}})"},
      {{R"(metadata.annotations['it\'s'])"},
       "{" + std::string(kIdentity) + R"(,"annotations":{"it's":"y"}}})"},
      // A path that a shorter one covers, in either order.
      {{"status", "status.phase"},
       "{" + (kIdentity + annotations) + R"(},"status":{"phase":"Running"}})"},
      {{"status.none", "status"},
       "{" + (kIdentity + annotations) + R"(},"status":{"phase":"Running"}})"},
      // A value that a path cannot enter is kept unchanged.
      {{"extra.deeper"}, "{" + (kIdentity + annotations) + R"(},"extra":1})"},
  };
  for (const auto& [paths, json] : cases) {
    const Object object = decode(Projection::keep(paths), kWholePod);
    EXPECT_EQ(object, Object::parse(json)) << object.to_json() << "\n" << json;
    EXPECT_EQ(object.key(), "b/a");
    EXPECT_EQ(object.uid(), "u");
    EXPECT_EQ(object.resource_version(), "7");
  }
}

TEST(ProjectionTest, DropsNamedFields) {
  const auto without = [](std::function<void(rapidjson::Document&)> change) {
    auto document = test::parse_json(kWholePod);
    change(document);
    return Object::from(document);
  };
  const struct {
    std::initializer_list<std::string_view> paths;
    std::function<void(rapidjson::Document&)> change;
  } cases[] = {
      {{}, [](auto&) {}},
      {{"none", "spec.none.deeper"}, [](auto&) {}},
      {{"metadata.managedFields"}, [](auto& d) { d["metadata"].RemoveMember("managedFields"); }},
      {{"spec", "status.phase"},
       [](auto& d) {
         d.RemoveMember("spec");
         d["status"].RemoveMember("phase");
       }},
      {{"spec.containers.ports"},
       [](auto& d) { d["spec"]["containers"][0].RemoveMember("ports"); }},
      {{"spec.containers[*].image"},
       [](auto& d) {
         for (auto& c : d["spec"]["containers"].GetArray()) c.RemoveMember("image");
       }},
      {{"metadata.annotations['example.com/a.b']"},
       [](auto& d) { d["metadata"]["annotations"].RemoveMember("example.com/a.b"); }},
      {{"metadata.annotations"}, [](auto& d) { d["metadata"].RemoveMember("annotations"); }},
      {{"extra"}, [](auto& d) { d.RemoveMember("extra"); }},
      {{"extra.deeper"}, [](auto&) {}},
  };
  for (const auto& [paths, change] : cases) {
    const Object object = decode(Projection::drop(paths), kWholePod);
    EXPECT_EQ(object, without(change)) << object.to_json();
  }
}

TEST(ProjectionTest, NamesMayBeEscapedInTheJson) {
  const auto keep = Projection::keep({"metadata.labels.app"});
  EXPECT_EQ(decode(keep, R"({"m\u0065tadata":{"l\u0061bels":{"\u0061pp":"web","b":1}}})"),
            Object::parse(R"({"metadata":{"labels":{"app":"web"}}})"));
  const auto drop = Projection::drop({"spec['a\"b']"});
  EXPECT_EQ(decode(drop, R"({"spec":{"a\"b":{"x":1},"c":2}})"),
            Object::parse(R"({"spec":{"c":2}})"));
}

TEST(ProjectionTest, DroppedValuesMayBeAnything) {
  const auto drop = Projection::drop({"x"});
  const Object expected = Object::parse(R"({"a":1,"b":2})");
  for (const std::string value :
       {"1", "-1.5e3", "null", "true", "false", R"("text")", R"("\"}]{[\\")", "{}", "[]", "[ ]",
        R"({"a":{"b":[1,{}]}})", R"(["]","}","\\\"]"])", "  {\n}  ",
        "[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]"}) {
    EXPECT_EQ(decode(drop, R"({"a":1,"x":)" + value + R"(,"b":2})"), expected) << value;
    EXPECT_EQ(decode(drop, R"({"x" : )" + value + R"( ,"a":1,"b":2})"), expected) << value;
    EXPECT_EQ(decode(drop, R"({"a":1,"b":2,"x":)" + value + "}"), expected) << value;
    EXPECT_EQ(decode(drop, R"({"x":)" + value + R"(,"a":1,"b":2,"x":)" + value + "}"), expected)
        << value;
  }
  EXPECT_EQ(decode(drop, R"({"x":[1,2,3]})"), Object::parse("{}"));
}

TEST(ProjectionTest, SkippedContainersAreParsedOnlyForBracketsAndQuotes) {
  const auto drop = Projection::drop({"x"});
  // The skipped value is not valid JSON, but the rest is read.
  for (const auto value :
       {"[1 2 3]", "[}", "{]", "{tru,:::}", "[\"\\q\"]", "{\"a\":\"\\uDC00\"}", "[\n\"\n\"]"})
    EXPECT_EQ(decode(drop, "{\"x\":" + std::string(value) + ",\"a\":1}"),
              Object::parse(R"({"a":1})"))
        << value;
  EXPECT_EQ(
      decode(drop, "{\"x\":" + std::string(100000, '[') + std::string(100000, ']') + ",\"a\":1}"),
      Object::parse(R"({"a":1})"));
  EXPECT_EQ(decode(drop, "{\"x\":[\0],\"a\":1}"sv), Object::parse(R"({"a":1})"));
  // But it must be complete and valid UTF-8; scalar values are validated.
  for (const auto text :
       {"{\"x\":["sv, "{\"x\":[{\"name\":1,\"kind\":{},\"name\":2},{\"b\":[],\"a\":3}"sv,
        "{\"x\":[\"]}"sv, "{\"x\":[]"sv, "{\"x\":tru}"sv, "{\"x\":01}"sv, "{\"x\":\"\\q\"}"sv,
        "{\"x\":}"sv, "{\"x\"}"sv, "{\"x\":{}]"sv, "{\"x\":{}.5}"sv, "{\"x\":[]e5}"sv,
        "{\"x\":{}{}}"sv, "{\"x\":[]\"\"}"sv, "{\"x\":[\"\xFF\"]}"sv}) {
    EXPECT_NE(error_of(drop, text), "") << text;
  }
}

TEST(ProjectionTest, WithoutManagedFieldsOnRecordings) {
  const auto projection = Projection::without_managed_fields();
  for (const auto& text : test::all_recorded_items()) {
    auto document = test::parse_json(text);
    document["metadata"].RemoveMember("managedFields");
    EXPECT_EQ(decode(projection, text), Object::from(document));
  }
}

TEST(ProjectionTest, ADecoderWithAProjectionContinuesAfterAnError) {
  JsonDecoder decoder(Projection::keep({"spec.a"}));
  for (const char* bad : {R"({"spec":{"a":{"b":[)", R"({"spec":{"x":[1}})", "{"}) {
    std::string text = bad;
    EXPECT_FALSE(decoder.decode(text));
    text = R"({"spec":{"a":{"b":1},"x":[1]},"y":2})";
    EXPECT_EQ(decoder.decode(text), Object::parse(R"({"spec":{"a":{"b":1}}})"));
  }
}

TEST(ProjectionTest, WatchesKeepBookmarksAndErrorsWhole) {
  StreamOptions options;
  options.projection = Projection::keep({"spec.nodeName"});
  for (const auto& name : test::recorded_watches()) {
    const auto whole = test::decode_watch(test::watch_body(name));
    const auto kept = test::decode_watch(test::watch_body(name), options);
    ASSERT_EQ(kept.events.size(), whole.events.size());
    for (std::size_t i = 0; i < whole.events.size(); ++i) {
      const auto& [type, object] = kept.events[i];
      EXPECT_EQ(type, whole.events[i].type);
      EXPECT_EQ(object.key(), whole.events[i].object.key());
      EXPECT_EQ(object.resource_version(), whole.events[i].object.resource_version());
      if (type == EventType::kBookmark || type == EventType::kError) {
        EXPECT_EQ(object, whole.events[i].object);
      } else {
        EXPECT_FALSE(object["status"].exists());
        EXPECT_EQ(object["spec"]["nodeName"], whole.events[i].object["spec"]["nodeName"]);
      }
    }
  }
}

TEST(ProjectionTest, ListsAreProjected) {
  StreamOptions options;
  options.projection = Projection::keep({"status.phase"});
  const auto whole = test::decode_list(test::list_body("v1_pods"));
  const auto kept = test::decode_list(test::list_body("v1_pods"), options);
  ASSERT_EQ(kept.items.size(), whole.items.size());
  for (std::size_t i = 0; i < whole.items.size(); ++i) {
    EXPECT_EQ(kept.items[i].key(), whole.items[i].key());
    EXPECT_EQ(kept.items[i].gvk(), whole.items[i].gvk());
    EXPECT_EQ(kept.items[i]["status"]["phase"], whole.items[i]["status"]["phase"]);
    EXPECT_EQ(kept.items[i]["status"].size(), 1u);
    EXPECT_FALSE(kept.items[i]["spec"].exists());
  }
}

TEST(ProjectionTest, RejectsInvalidProjections) {
  const struct {
    std::function<void()> make;
    const char* why;
  } cases[] = {
      {[] { Projection::keep({"a..b"}); }, "expected a name"},
      {[] { Projection::keep({""}); }, "empty path"},
      {[] { Projection::keep({"a[0].b"}); }, "single elements of an array cannot be chosen"},
      {[] { Projection::drop({"a[0]"}); }, "single elements of an array cannot be chosen"},
      {[] { Projection::drop({"metadata.name"}); }, "metadata.name is always kept"},
      {[] {
         Projection::drop({"metadata.uid.x", "metadata.uid"});
       },
       "metadata.uid is always kept"},
      {[] { Projection::drop({"metadata"}); }, "is always kept"},
      {[] { Projection::drop({"kind"}); }, "always kept"},
      {[] { Projection::drop({"apiVersion"}); }, "always kept"},
  };
  for (const auto& [make, why] : cases) {
    try {
      make();
      ADD_FAILURE() << why;
    } catch (const InvalidArgument& e) {
      EXPECT_THAT(e.what(), HasSubstr(why));
    }
  }
}

TEST(ProjectionTest, EqualsProjectionsThatKeepTheSame) {
  const auto one = Projection::keep({"spec", "metadata.labels"});
  const auto copy = one;
  EXPECT_EQ(one, copy);
  EXPECT_EQ(one, Projection::keep({"metadata.labels", "spec"}));
  EXPECT_EQ(one, Projection::keep({"spec.nodeName", "spec", "spec.hostname", "metadata.labels",
                                   "metadata.name"}));
  EXPECT_NE(one, Projection::keep({"spec"}));
  EXPECT_NE(one, Projection::keep({"spec.nodeName", "metadata.labels"}));
  EXPECT_NE(one, Projection());
  EXPECT_EQ(Projection::without_managed_fields(), Projection::drop({"metadata.managedFields"}));
  EXPECT_NE(Projection::keep({"status"}), Projection::drop({"status"}));
  EXPECT_NE(Projection::keep({}), Projection());
  EXPECT_EQ(Projection::drop({}), Projection());
  EXPECT_EQ(Projection(), Projection());
  EXPECT_TRUE(Projection().keeps_everything());
  EXPECT_FALSE(one.keeps_everything());
}

}  // namespace
}  // namespace lookout::api
