// Repeated strings in an object are stored once, which readers must not notice.
#include "lookout/api/detail/repeated_strings.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "lookout/api/detail/encoding.h"
#include "lookout/api/detail/object_editor.h"
#include "lookout/api/fields.h"
#include "lookout/api/json.h"
#include "lookout/api/labels.h"
#include "lookout/api/object.h"
#include "lookout/k8s/meta/v1.h"
#include "tests/api/recordings.h"
#include "tests/support/held.h"
#include "tests/support/sanitizers.h"

namespace lookout::api {
namespace {

using lookout::test::held;
using lookout::test::kSanitized;

bool is_again(Value value) { return *value.data() == detail::kTagAgain; }

Object in_array(const std::vector<std::string>& elements) {
  std::string json = R"({"a":[)";
  for (const auto& element : elements) json += (json.back() == '[' ? "\"" : ",\"") + element + '"';
  return Object::parse(json + "]}");
}

TEST(RepeatedStringsTest, ARepetitionTakesThreeBytes) {
  const std::string text = "2026-11-20T10:54:22Z";
  const std::size_t once = in_array({text}).memory_size();
  const Object twice = in_array({text, text});
  EXPECT_EQ(twice.memory_size() - once, 3u);
  EXPECT_TRUE(is_again(twice["a"][1]));
  EXPECT_EQ(twice["a"][1].kind(), Value::Kind::kString);
  EXPECT_EQ(twice["a"][1].as_string(), text);
  EXPECT_EQ(twice["a"][1].to_string_view(), text);
  EXPECT_EQ(twice["a"][1], twice["a"][0]);
  EXPECT_EQ(twice["a"][1].to_json(), '"' + text + '"');
  EXPECT_EQ(twice.to_json(), R"({"a":[")" + text + R"(",")" + text + R"("]})");
}

TEST(RepeatedStringsTest, ShortStringsAndSymbolsAreNotShared) {
  EXPECT_FALSE(is_again(held(in_array({"fifteen-bytes-x", "fifteen-bytes-x"}))["a"][1]));
  EXPECT_TRUE(is_again(held(in_array({"sixteen-bytes-xx", "sixteen-bytes-xx"}))["a"][1]));
  EXPECT_FALSE(is_again(held(in_array({"PreemptLowerPriority", "PreemptLowerPriority"}))["a"][1]));
  const std::string longest(63, 'x');
  const std::string longer(64, 'x');
  const std::string very_long(5000, 'x');
  const Object object =
      in_array({longest, longer, very_long, longest, longer, very_long, very_long});
  for (int i = 3; i < 7; ++i) EXPECT_TRUE(is_again(object["a"][i])) << i;
  EXPECT_EQ(object["a"][3].as_string(), longest);
  EXPECT_EQ(object["a"][4].as_string(), longer);
  EXPECT_EQ(object["a"][6].as_string(), very_long);
}

// Container lengths and distances are correct for all contents in between.
TEST(RepeatedStringsTest, WithAnyContentInBetween) {
  const std::string text = "registry.example.com/shop/web:v1";
  std::size_t again = 0;
  for (std::size_t n = 0; n < 300; ++n) {
    const std::string filler(n, 'f');
    const std::string json = R"({"b":{"c":")" + text + R"("},"d":[")" + filler + R"(",{"e":[")" +
                             text + R"("],"f":")" + text + R"("}],"g":")" + filler +
                             R"(","h":{"i":")" + text + R"("}})";
    const Object object = Object::parse(json);
    ASSERT_EQ(object.to_json(), json);
    again += is_again(object["h"]["i"]) ? 1u : 0u;
    ASSERT_EQ(object["d"][1]["f"].as_string(), text);
    ASSERT_EQ(object["d"].size(), 2u);
    ASSERT_EQ(object["d"], held(Object::parse(R"({"x":)" + object["d"].to_json() + "}"))["x"]);
  }
  EXPECT_GT(again, 290u) << "a filler may have the same hash";
}

TEST(RepeatedStringsTest, AtAnyDistance) {
  for (const std::size_t n : {60'000u, 65'400u, 65'470u, 65'530u, 65'536u, 70'000u, 200'000u}) {
    const std::string filler(n, 'f');
    const Object object = in_array({"first-text-of-all", filler, "first-text-of-all"});
    EXPECT_EQ(object["a"][2].as_string(), "first-text-of-all");
    EXPECT_EQ(object["a"][1].as_string(), filler);
    EXPECT_EQ(is_again(object["a"][2]), n <= 65'470) << n;
    EXPECT_EQ(Object::parse(object.to_pretty_json()), object);
    EXPECT_EQ(Object::from(object.to_document()), object);
    EXPECT_EQ(object["a"], held(in_array({"first-text-of-all", filler, "first-text-of-all"}))["a"]);
  }
}

TEST(RepeatedStringsTest, SelectorsMatchThem) {
  const Object object = Object::parse(
      R"({"metadata":{"namespace":"a-value-that-is-long","name":"a-value-that-is-long","labels":)"
      R"({"a":"a-value-that-is-long","b":"a-value-that-is-long"}},"spec":{"nodeName":"a-value-that-is-long"}})");
  ASSERT_TRUE(is_again(object.labels()["b"]));
  EXPECT_EQ(object.ns(), "a-value-that-is-long");
  EXPECT_EQ(object.name(), "a-value-that-is-long");
  EXPECT_TRUE(
      labels::parse("a=a-value-that-is-long,b=a-value-that-is-long").matches(object.labels()));
  EXPECT_TRUE(labels::parse("b in (x,a-value-that-is-long)").matches(object.labels()));
  EXPECT_FALSE(labels::parse("b notin (x,a-value-that-is-long)").matches(object.labels()));
  EXPECT_FALSE(labels::parse("b!=a-value-that-is-long").matches(object.labels()));
  EXPECT_TRUE(fields::parse("spec.nodeName=a-value-that-is-long").matches(object));
  EXPECT_FALSE(fields::parse("spec.nodeName!=a-value-that-is-long").matches(object));
}

/// Values with many equal strings in them, nested in each other.
class RandomValues {
 public:
  explicit RandomValues(unsigned seed) : random_(seed) {}

  std::string value(int depth = 0) {
    const std::size_t kind = random_() % (depth > 5 ? 6 : 11);
    if (kind < 4) return '"' + kTexts[random_() % std::size(kTexts)] + '"';
    if (kind == 4) return std::to_string(random_() % 70);
    if (kind == 5) return kind_of_scalar();
    if (kind < 9) return object(depth);
    std::string out = "[";
    for (std::size_t n = random_() % 6; n > 0; --n)
      out += (out.back() == '[' ? "" : ",") + value(depth + 1);
    return out + "]";
  }

  std::string object(int depth = 0) {
    std::vector<std::string> names(std::begin(kNames), std::end(kNames));
    std::shuffle(names.begin(), names.end(), random_);
    std::string out = "{";
    for (std::size_t n = random_() % 6; n > 0; --n)
      out += (out.back() == '{' ? "\"" : ",\"") + names[n] + "\":" + value(depth + 1);
    return out + "}";
  }

 private:
  std::string kind_of_scalar() {
    constexpr const char* kScalars[] = {"null", "true", "{}", "[]", "1.5", R"({"f:a":{"f:b":{}}})"};
    return kScalars[random_() % std::size(kScalars)];
  }

  inline static const std::string kTexts[] = {"2026-11-20T10:54:22Z",
                                              "2026-11-20T10:54:31Z",
                                              "\\r\\r\\r\\r\\r\\r\\r\\r\\r",
                                              "short",
                                              "Running",
                                              "registry.example.com/shop/web:v3.5.1",
                                              std::string(70, 'x'),
                                              std::string(63, 'x'),
                                              "sixteen-bytes-xx"};
  inline static const std::string kNames[] = {"name", "spec",    "image", "a",
                                              "b",    "own-key", "items", "metadata"};
  std::mt19937 random_;
};

/// Every value below both is equal, also when it is alone in an object.
void expect_equal_below(Value a, Value b) {
  ASSERT_TRUE(a == b);
  const Object alone = Object::parse(R"({"x":)" + a.to_json() + "}");
  ASSERT_TRUE(alone["x"] == a);
  ASSERT_TRUE(a == alone["x"]);
  ASSERT_EQ(alone["x"].to_json(), b.to_json());
  auto other = b.members().begin();
  for (const auto& [name, member] : a.members()) {
    ASSERT_EQ(name, (*other).name);
    expect_equal_below(member, (*other).value);
    ++other;
  }
  for (std::size_t i = 0; i < a.size() && a.is_array(); ++i) expect_equal_below(a[i], b[i]);
}

TEST(RepeatedStringsTest, EqualContentIsEqualHoweverItIsCreated) {
  RandomValues random(1);
  JsonDecoder decoder;
  for (int i = 0; i < (kSanitized ? 150 : 1500); ++i) {
    const std::string json = random.object();
    SCOPED_TRACE(json);
    const Object object = Object::parse(json);
    EXPECT_EQ(test::parse_json(object.to_json()), test::parse_json(json));
    EXPECT_EQ(Object::parse(object.to_json()), object);
    EXPECT_EQ(Object::from(test::parse_json(json)), object);
    std::string text = json;
    EXPECT_EQ(decoder.decode(text), object);
    const Object copy = with_type(with_type(object, "v9", "Other"), "v1", "Pod");
    EXPECT_EQ(copy, with_type(Object::parse(object.to_pretty_json()), "v1", "Pod"));
    expect_equal_below(object.body(), held(Object::from(object.to_document())).body());
    if (HasFatalFailure()) return;
  }
}

TEST(RepeatedStringsTest, OtherContentIsNotEqual) {
  // The bytes of x are equal, but refer to different strings.
  const Object a =
      Object::parse(R"({"a":"a-text-with-number-1","x":{"b":"a-text-with-number-1"}})");
  const Object b =
      Object::parse(R"({"a":"a-text-with-number-2","x":{"b":"a-text-with-number-2"}})");
  ASSERT_TRUE(is_again(a["x"]["b"]));
  EXPECT_NE(a["x"], b["x"]);
  EXPECT_NE(a["x"]["b"], b["x"]["b"]);
  EXPECT_EQ(a["x"], held(Object::parse(R"({"x":{"b":"a-text-with-number-1"}})"))["x"]);
  RandomValues random(2);
  std::vector<Object> objects;
  for (int i = 0; i < (kSanitized ? 60 : 300); ++i)
    objects.push_back(
        Object::parse(R"({"x":)" + random.value() + R"(,"y":)" + random.value() + "}"));
  for (const Object& one : objects) {
    for (const Object& other : objects) {
      ASSERT_EQ(one["x"] == other["y"], one["x"].to_json() == other["y"].to_json());
      ASSERT_EQ(one["x"] == other["x"], one["x"].to_json() == other["x"].to_json());
    }
  }
}

TEST(RepeatedStringsTest, AtTheBottomOfManyLevels) {
  std::string value = R"(["text-at-the-bottom"])";
  for (int i = 0; i < 900; ++i) value = R"({"a":)" + value + R"(,"b":"a-text-beside-the-next"})";
  const std::string json = R"({"x":)" + value + R"(,"y":)" + value + "}";
  const Object object = Object::parse(json);
  EXPECT_EQ(object.to_json(), json);
  EXPECT_EQ(object["x"], object["y"]);
  EXPECT_EQ(held(with_type(object, "v1", "Pod"))["y"], object["x"]);
}

TEST(RepeatedStringsTest, RecordedObjectsAreSmaller) {
  std::size_t again = 0;
  const auto count = [&](auto& self, Value value) -> void {
    again += is_again(value) ? 1u : 0u;
    for (const auto& member : value.members()) self(self, member.value);
    for (const Value element : value.elements()) self(self, element);
  };
  for (const auto& text : test::all_recorded_items()) {
    const Object object = Object::parse(text);
    count(count, object.body());
    EXPECT_EQ(object.metadata().creation_timestamp().has_value(),
              !object["metadata"]["creationTimestamp"].as_string().empty());
  }
  EXPECT_GT(again, 50u);
}

}  // namespace
}  // namespace lookout::api
