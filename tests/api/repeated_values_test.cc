// For repeated texts, and for texts with the same beginning, a decoder must have the same results as a
// new one.
#include "api/repeated_values.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/api/json.h"
#include "lookout/api/object.h"
#include "lookout/api/projection.h"
#include "lookout/api/protobuf.h"
#include "tests/api/recordings.h"

namespace lookout::api {
namespace {

using detail::RepeatedValues;

std::string_view bytes_of(const Object& object) {
  const std::uint8_t* const data = object.body().data();
  return {reinterpret_cast<const char*>(data),
          static_cast<std::size_t>(detail::skip_value(data) - data)};
}

/// Decodes the texts one after another with one decoder, and each with its own.
class Comparison {
 public:
  explicit Comparison(Projection projection = {}, std::size_t max_depth = 1000)
      : projection_(projection), max_depth_(max_depth), old_(std::move(projection)) {
    old_.set_max_depth(max_depth);
  }

  void decode(std::string_view text) {
    JsonDecoder fresh(projection_);
    fresh.set_max_depth(max_depth_);
    std::string for_old(text);
    std::string for_fresh(text);
    const Object seen = old_.decode(for_old);
    const Object expected = fresh.decode(for_fresh);
    ASSERT_EQ(static_cast<bool>(seen), static_cast<bool>(expected)) << text;
    if (expected) {
      ASSERT_EQ(bytes_of(seen), bytes_of(expected)) << text;
      ASSERT_EQ(seen.key(), expected.key());
    } else {
      ASSERT_EQ(old_.error(), fresh.error()) << text;
      ASSERT_EQ(old_.refused_key(), fresh.refused_key()) << text;
    }
  }

  /// Often enough to be cached and found.
  void teach(std::string_view text) {
    for (int i = 0; i < 5; ++i) decode(text);
  }

 private:
  Projection projection_;
  std::size_t max_depth_;
  JsonDecoder old_;
};

constexpr std::string_view kLabelledPod =
    R"({"kind":"Pod","metadata":{"name":"a","labels":{"app":"web","tier":"front","x":"y"},)"
    R"("managedFields":[{"fieldsV1":{"f:spec":{"f:containers":{"k:{\"name\":\"web\"}":{".":{}}}}}}]},)"
    R"("spec":{"containers":[{"name":"web","image":"web:1","ports":[{"containerPort":80,"protocol":"TCP"}]}],)"
    R"("tolerations":[{"key":"node.kubernetes.io/not-ready","operator":"Exists","tolerationSeconds":300}]}})";

std::string with(std::string_view text, std::string_view old, std::string_view replacement) {
  std::string out(text);
  const std::size_t at = out.find(old);
  EXPECT_NE(at, std::string::npos) << old;
  return out.replace(at, old.size(), replacement);
}

TEST(RepeatedValuesTest, AnotherObjectWithTheSameBeginning) {
  Comparison comparison;
  comparison.teach(kLabelledPod);
  // One thing changes at a time: a value, a member more or less, the order, the spaces.
  const struct {
    std::string_view old;
    std::string_view replacement;
  } changes[] = {
      {R"("x":"y"})", R"("x":"z"})"},
      {R"("x":"y"})", R"("x":"y","z":""})"},
      {R"("x":"y"})", R"("x":"y" })"},
      {R"(,"x":"y")", ""},
      {R"("app":"web","tier":"front")", R"("tier":"front","app":"web")"},
      {R"("x":"y")", R"("app":"other")"},
      {R"("x":"y")", R"("x":"y","x":"last")"},
      {R"("x":"y")", R"("x":{})"},
      {R"("x":"y")", R"("x":[])"},
      {R"("x":"y")", R"("x":1.5)"},
      {R"("x":"y")", R"("x":"\u0026")"},
      {"300", "301"},
      {"300", "3000"},
      {"300", "null"},
      {R"({".":{}})", R"({".":{},"f:image":{}})"},
      {R"("name":"web")",
       R"("name":"web","unknown":{"to":["the","schema",{"x":"0123456789012345"}]})"},
  };
  for (const auto& [old, replacement] : changes) {
    comparison.decode(with(kLabelledPod, old, replacement));
    comparison.decode(kLabelledPod);
  }
}

TEST(RepeatedValuesTest, TextsThatEndInACachedValue) {
  Comparison comparison;
  comparison.teach(kLabelledPod);
  for (std::size_t size = 0; size < kLabelledPod.size(); ++size)
    comparison.decode(kLabelledPod.substr(0, size));
  for (const char c : {'"', '{', '}', ']', ',', ' ', '\x01', '\xff'}) {
    for (std::size_t at = 0; at < kLabelledPod.size(); at += 3) {
      std::string text(kLabelledPod);
      text[at] = c;
      comparison.decode(text);
    }
  }
  comparison.decode(kLabelledPod);
}

TEST(RepeatedValuesTest, TheSameValueInOtherFields) {
  const std::string value = R"({"name":"one","b":[1,2,{"c":null}],"name":"two","a":true,"e":{}})";
  const std::string object = R"({"spec":)" + value + "}";
  Comparison comparison;
  comparison.teach(object);
  comparison.decode(R"({"status":)" + value + R"(,"spec":[)" + value + "," + value + R"(,7],"m":)" +
                    value + "}");
  comparison.decode(R"({"metadata":)" + value + "}");
  comparison.decode(value);
  comparison.decode(object);
}

TEST(RepeatedValuesTest, TheDepthOfCachedValuesCounts) {
  const std::string value = R"({"name":"0123456789012345678901234567","b":{"c":[{"d":{}}]}})";
  for (std::size_t max = 1; max < 12; ++max) {
    Comparison comparison({}, max);
    comparison.teach(R"({"a":)" + value + "}");
    comparison.decode(R"({"a":{"b":)" + value + "}}");
    comparison.decode(R"({"a":[[)" + value + "]]}");
    comparison.decode(R"({"a":)" + value + "}");
  }
}

TEST(RepeatedValuesTest, WithProjections) {
  for (const auto& projection :
       {Projection::without_managed_fields(), Projection::keep({"spec.containers.name"}),
        Projection::keep({"metadata.labels", "spec.tolerations"}),
        Projection::drop({"spec.containers.image", "metadata.labels"})}) {
    Comparison comparison(projection);
    comparison.teach(kLabelledPod);
    comparison.decode(with(kLabelledPod, "web:1", "web:2"));
    comparison.decode(with(kLabelledPod, "300", "301"));
    // A part that the projection keeps in one place is dropped in the other.
    comparison.decode(R"({"status":{"containers":[{"name":"web","image":"web:1","ports":)"
                      R"([{"containerPort":80,"protocol":"TCP"}]}]},"spec":{"containers":)"
                      R"([{"name":"web","image":"web:1","ports":)"
                      R"([{"containerPort":80,"protocol":"TCP"}]}]}})");
    comparison.decode(kLabelledPod);
  }
}

/// Decodes each text three times, then with `changes` changes of a character, one at a time.
template <class Compared, class Character>
void decode_and_damage(Compared& comparison, const std::vector<std::string>& texts, int changes,
                       Character character) {
  for (int round = 0; round < 3; ++round) {
    for (const std::string& text : texts) comparison.decode(text);
  }
  std::mt19937 random(1);
  for (const std::string& text : texts) {
    for (int i = 0; i < changes; ++i) {
      std::string changed = text;
      changed[random() % changed.size()] = character(random);
      comparison.decode(changed);
    }
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(RepeatedValuesTest, RecordedObjects) {
  Comparison comparison;
  const auto items = test::all_recorded_items();
  ASSERT_GT(items.size(), 20u);
  decode_and_damage(comparison, items, 20,
                    [](std::mt19937& random) { return R"("{}[]:,0a\ )"[random() % 11]; });
}

// The events of a thread share a cache.
TEST(RepeatedValuesTest, Events) {
  const auto compare = [](const std::string& object) {
    JsonDecoder fresh;
    std::string text = object;
    const Object expected = fresh.decode(text);
    std::string event = R"({"type":"MODIFIED","object":)" + object + "}";
    const auto decoded = JsonDecoder().decode_event(event);
    ASSERT_EQ(decoded.has_value(), static_cast<bool>(expected)) << object;
    if (expected) {
      ASSERT_EQ(decoded->object, expected) << object;
    }
  };
  std::mt19937 random(2);
  for (const auto& item : test::all_recorded_items()) {
    for (int i = 0; i < 4; ++i) compare(item);
    for (int i = 0; i < 10; ++i) {
      std::string text = item;
      // (A brace may move the end of the object to another place in the event.)
      text[random() % text.size()] = R"("[]:,0a\ )"[random() % 9];
      compare(text);
    }
  }
}

/// The same as Comparison, for protobuf.
class ProtobufComparison {
 public:
  explicit ProtobufComparison(const Projection& projection = {})
      : projection_(projection), old_(projection) {}

  void decode(const std::string& bytes) {
    ProtobufDecoder fresh(projection_);
    const Object expected = fresh.decode(bytes);
    const Object seen = old_.decode(bytes);
    ASSERT_EQ(static_cast<bool>(seen), static_cast<bool>(expected));
    ASSERT_EQ(old_.error(), fresh.error());
    ASSERT_EQ(old_.unknown_fields().count, fresh.unknown_fields().count);
    ASSERT_EQ(old_.unknown_fields().first, fresh.unknown_fields().first);
    if (expected) {
      ASSERT_EQ(bytes_of(seen), bytes_of(expected)) << expected.to_json();
    }
  }

 private:
  Projection projection_;
  ProtobufDecoder old_;
};

std::vector<std::string> recorded_in_protobuf() {
  std::vector<std::string> out;
  for (const auto& item : test::all_recorded_items()) {
    std::string bytes;
    if (ProtobufEncoder().encode(Object::parse(item), bytes)) out.push_back(bytes);
  }
  return out;
}

TEST(RepeatedValuesTest, ProtobufMessages) {
  const auto objects = recorded_in_protobuf();
  ASSERT_GT(objects.size(), 20u);
  for (const auto& projection :
       {Projection(), Projection::without_managed_fields(),
        Projection::keep({"metadata", "spec.containers.name", "status.conditions"})}) {
    ProtobufComparison comparison(projection);
    decode_and_damage(comparison, objects, 60,
                      [](std::mt19937& random) { return static_cast<char>(random()); });
    if (HasFatalFailure()) return;
  }
}

// The same bytes, read as messages of two types.
TEST(RepeatedValuesTest, MessagesOfAnotherType) {
  const auto bytes_of_json = [](std::string_view json) {
    std::string bytes;
    EXPECT_TRUE(ProtobufEncoder().encode(Object::parse(json), bytes));
    return bytes;
  };
  ProtobufComparison comparison;
  for (int i = 0; i < 4; ++i) {
    // Field 1 is a name in both references; field 2 differs.
    comparison.decode(bytes_of_json(
        R"({"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"name":"a","env":[{"name":"b","valueFrom":)"
        R"({"secretKeyRef":{"name":"a-name-that-is-long-enough-to-be-kept","key":"k"}}}]}]}})"));
    comparison.decode(bytes_of_json(
        R"({"apiVersion":"v1","kind":"Pod","spec":{"containers":[{"name":"a","envFrom":)"
        R"([{"prefix":"p","secretRef":{"name":"a-name-that-is-long-enough-to-be-kept"}}]}],)"
        R"("imagePullSecrets":[{"name":"a-name-that-is-long-enough-to-be-kept"}],)"
        R"("volumes":[{"name":"a-name-that-is-long-enough-to-be-kept"}],)"
        R"("hostAliases":[{"ip":"a-name-that-is-long-enough-to-be-kept"}]}})"));
  }
}

// More texts than the cache can hold, and texts that never repeat.
TEST(RepeatedValuesTest, WhenTheMemoryIsFull) {
  Comparison comparison;
  for (int i = 0; i < 400; ++i) {
    const std::string number = std::to_string(i);
    std::string text = R"({"kind":"Pod","spec":{)";
    for (int member = 0; member < 10; ++member) {
      text += "\"m" + std::to_string(member) + R"(":{"own":")" + number + "-" +
              std::to_string(member) + std::string(static_cast<std::size_t>(i % 7 * 50), 'x') +
              R"(","same":["0123456789","0123456789","0123456789"]},)";
    }
    comparison.decode(text + R"("last":{}}})");
  }
  comparison.teach(kLabelledPod);
}

class RepeatedValuesPlace : public testing::Test {
 protected:
  /// Whether a text is found after enough repetitions to be cached.
  bool keeps(const std::string& text, std::size_t levels = 1) {
    for (int i = 0; i < 2; ++i) values_.keep(text, "\x03", levels);
    return values_.find(text).text_size == text.size();
  }
  RepeatedValues values_;
};

TEST_F(RepeatedValuesPlace, FindsOnlyTheCompleteText) {
  const std::string text = R"({"name":"0123456789012345678901234567","a":[{}]})";
  const Object object = Object::parse(text);
  EXPECT_EQ(values_.find(text).text_size, 0u);
  for (int i = 0; i < 2; ++i) values_.keep(text, bytes_of(object), 3);
  const auto found = values_.find(text + ",");
  EXPECT_EQ(found.text_size, text.size());
  EXPECT_EQ(found.levels, 3u);
  EXPECT_EQ(found.value, object.body());
  EXPECT_EQ(values_.find(text.substr(0, text.size() - 1)).text_size, 0u);
  EXPECT_EQ(values_.find(with(text, "67", "68") + "}").text_size, 0u);
  EXPECT_EQ(values_.find("").text_size, 0u);
}

TEST_F(RepeatedValuesPlace, KeepsNoShortLongOrDeepValues) {
  constexpr std::size_t kBrackets = 2;
  const auto sized = [&](std::size_t size) {
    return "[" + std::string(size - kBrackets, '1') + "]";
  };
  EXPECT_FALSE(keeps(sized(RepeatedValues::kShortest - 1)));
  EXPECT_TRUE(keeps(sized(RepeatedValues::kShortest)));
  EXPECT_FALSE(keeps(sized(RepeatedValues::kLongest + 1)));
  EXPECT_TRUE(keeps(sized(RepeatedValues::kLongest)));
  EXPECT_TRUE(keeps(sized(100), RepeatedValues::kMostLevels));
  EXPECT_FALSE(keeps(sized(200), RepeatedValues::kMostLevels + 1));
}

TEST_F(RepeatedValuesPlace, EvictsValuesThatAreNotFound) {
  // Enough texts for collisions in each slot.
  const auto text = [](int i) {
    return "[\"" + std::to_string(1000000 + i) + std::string(30, 'x') + "\"]";
  };
  ASSERT_TRUE(keeps(text(0)));
  for (int i = 1; i < 500; ++i) {
    keeps(text(i));
    EXPECT_EQ(values_.find(text(0)).text_size, text(0).size());
  }
  for (int i = 1; i < 20000; ++i) keeps(text(i));
  EXPECT_EQ(values_.find(text(0)).text_size, 0u);
}

TEST_F(RepeatedValuesPlace, PausesWhereNothingRepeats) {
  constexpr std::size_t kObject = 4096;
  std::size_t tried = 0;
  for (int i = 0; i < 5000; ++i) tried += values_.pays(kObject) ? 1u : 0u;
  EXPECT_GT(tried, 100u);   // it tries again
  EXPECT_LT(tried, 1000u);  // but not often
  ASSERT_TRUE(keeps("[" + std::string(1000, ' ') + "]"));
  for (int i = 0; i < 300; ++i) values_.pays(kObject);
  tried = 0;
  for (int i = 0; i < 1000; ++i) {
    values_.find("[" + std::string(1000, ' ') + "]");
    tried += values_.pays(kObject) ? 1u : 0u;
  }
  EXPECT_GT(tried, 700u);
}

}  // namespace
}  // namespace lookout::api
