#include "lookout/api/object.h"

#include <gtest/gtest.h>
#include <rapidjson/document.h>

#include <barrier>
#include <cstdint>
#include <limits>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "lookout/api/error.h"
#include "lookout/api/symbols.h"
#include "lookout/k8s/meta/v1.h"
#include "tests/api/recordings.h"
#include "tests/support/allocations.h"
#include "tests/support/held.h"

namespace lookout::api {
namespace {

constexpr const char* kPod =
    R"({"apiVersion":"v1","kind":"Pod","metadata":{"name":"a","namespace":"b","uid":"u","resourceVersion":"7","labels":{"app":"web"},"annotations":{"note":"x"}}})";

TEST(ObjectTest, AnEmptyHandleReadsAsAbsent) {
  const Object object;
  EXPECT_FALSE(object);
  EXPECT_EQ(object.ns(), "");
  EXPECT_EQ(object.name(), "");
  EXPECT_EQ(object.uid(), "");
  EXPECT_EQ(object.resource_version(), "");
  EXPECT_EQ(object.key(), "");
  EXPECT_FALSE(object[sym::kSpec].exists());
  EXPECT_FALSE(object[sym::kStatus].exists());
  EXPECT_EQ(object.kind(), "");
  EXPECT_EQ(object.gvk(), GroupVersionKind{});
  EXPECT_FALSE(object.labels().exists());
  EXPECT_FALSE(object.annotations().exists());
  EXPECT_FALSE(object.metadata());
  EXPECT_FALSE(object.body().exists());
  EXPECT_FALSE(object["spec"]["containers"][0].exists());
  EXPECT_EQ(object.to_json(), "null");
  EXPECT_EQ(object.memory_size(), 0u);
  EXPECT_TRUE(object.to_document().ObjectEmpty());
  EXPECT_EQ(object, Object());
  EXPECT_NE(object, Object::parse("{}"));
}

TEST(ObjectTest, IdentityIsReadFromMetadata) {
  const Object object = Object::parse(kPod);
  EXPECT_EQ(object.name(), "a");
  EXPECT_EQ(object.ns(), "b");
  EXPECT_EQ(object.uid(), "u");
  EXPECT_EQ(object.resource_version(), "7");
  EXPECT_EQ(object.key(), "b/a");
  EXPECT_EQ(object.api_version(), "v1");
  EXPECT_EQ(object.kind(), "Pod");
  EXPECT_EQ(object.gvk(), (GroupVersionKind{"", "v1", "Pod"}));
  EXPECT_EQ(object.labels()["app"].as_string(), "web");
  EXPECT_EQ(object.annotations()["note"].as_string(), "x");
  EXPECT_EQ(object.metadata().name(), "a");
}

TEST(ObjectTest, KeysEqualThoseOfClientGo) {
  EXPECT_EQ(Object::parse(R"({"metadata":{"name":"a"}})").key(), "a");
  EXPECT_EQ(Object::parse(R"({"metadata":{"namespace":"b"}})").key(), "b/");
  EXPECT_EQ(Object::parse("{}").key(), "");
}

TEST(ObjectTest, IdentityOfTheWrongKindReadsAsEmpty) {
  const Object object = Object::parse(
      R"({"kind":7,"metadata":{"name":1,"namespace":{},"uid":null,"resourceVersion":[],"labels":"x"}})");
  EXPECT_EQ(object.key(), "");
  EXPECT_EQ(object.uid(), "");
  EXPECT_EQ(object.resource_version(), "");
  EXPECT_EQ(object.kind(), "");
  EXPECT_FALSE(object.labels()["app"].exists());
  for (const char* metadata : {"null", "[]", "\"x\"", "7"})
    EXPECT_EQ(Object::parse("{\"metadata\":" + std::string(metadata) + "}").key(), "");
}

// The header has 16-bit offsets; fields beyond their range are searched for.
TEST(ObjectTest, IdentityIsFoundAtAnyOffset) {
  // A member that is sorted before metadata, one before the names in metadata, or both.
  for (const std::size_t size :
       {std::size_t{10}, std::size_t{65400}, std::size_t{65500}, std::size_t{65530},
        std::size_t{65535}, std::size_t{65536}, std::size_t{200000}}) {
    for (const bool before_metadata : {false, true}) {
      SCOPED_TRACE(std::to_string(size) + (before_metadata ? " before" : " inside"));
      const std::string filler(size, 'x');
      const std::string before =
          before_metadata ? "\"kind\":\"" + filler + "\"," : std::string("\"kind\":\"k\",");
      const std::string inside =
          before_metadata ? std::string() : "\"generateName\":\"" + filler + "\",";
      const Object object = Object::parse(
          "{" + before + "\"metadata\":{" + inside + R"("name":")" + filler +
          R"(n","namespace":"ns","uid":"u","resourceVersion":"7","labels":{"app":"web"},"annotations":{"note":"x"}},"spec":{"a":1},"status":{"b":2}})");
      EXPECT_EQ(object[sym::kSpec]["a"].as_int(), 1);
      EXPECT_EQ(object[sym::kStatus]["b"].as_int(), 2);
      EXPECT_EQ(object[sym::kKind].as_string(), before_metadata ? filler : "k");
      EXPECT_EQ(object.name(), filler + "n");
      EXPECT_EQ(object.ns(), "ns");
      EXPECT_EQ(object.uid(), "u");
      EXPECT_EQ(object.resource_version(), "7");
      EXPECT_EQ(object.key(), "ns/" + filler + "n");
      EXPECT_EQ(object.labels()["app"].as_string(), "web");
      EXPECT_EQ(object.annotations()["note"].as_string(), "x");
      EXPECT_EQ(object.metadata().uid(), "u");
      EXPECT_EQ(object.key_hash(), key_hash("ns", filler + "n"));
    }
  }
  // Absent fields stay absent.
  const Object object =
      Object::parse("{\"kind\":\"" + std::string(70000, 'x') + "\",\"metadata\":{}}");
  EXPECT_EQ(object.key(), "");
  EXPECT_FALSE(object.labels().exists());
}

TEST(ObjectTest, EqualityComparesTheContent) {
  const Object a = Object::parse(kPod);
  const Object b = Object::parse(kPod);
  const Object other = Object::parse(R"({"metadata":{"name":"a"}})");
  EXPECT_EQ(a, b);
  EXPECT_FALSE(a.same(b));
  EXPECT_TRUE(a.same(Object(a)));
  EXPECT_NE(a, other);
  EXPECT_NE(a, Object());
}

TEST(ObjectTest, CopiesShareAndMovesLeaveAnEmptyHandle) {
  Object a = Object::parse(kPod);
  Object b;
  EXPECT_EQ(lookout::test::allocations_of([&] { b = a; }), 0u);
  EXPECT_TRUE(a.same(b));
  const Object c = std::move(a);
  EXPECT_FALSE(a);  // the state is specified
  EXPECT_TRUE(c.same(b));
  b = *&b;  // self-assignment
  EXPECT_TRUE(c.same(b));
  b = Object();
  EXPECT_EQ(c.name(), "a");
  b.swap(a);
  EXPECT_FALSE(b);
  const auto* header = Object(c).detach();
  EXPECT_TRUE(Object::adopt(header).same(c));
}

TEST(ObjectTest, DecodingAllocatesOnce) {
  // Once for the object; the decoder's buffers stay between calls.
  JsonDecoder decoder;
  std::string text;
  text.reserve(4096);
  const auto decode = [&] {
    text = kPod;
    return decoder.decode(text);
  };
  for (int i = 0; i < 5; ++i) decode();  // (the second object enables RepeatedValues)
  EXPECT_EQ(lookout::test::allocations_of(decode), 1u);
}

TEST(ObjectTest, TheKeyHashUsesNamespaceAndName) {
  EXPECT_EQ(Object::parse(kPod).key_hash(), key_hash("b", "a"));
  EXPECT_NE(key_hash("b", "a"), key_hash("a", "b"));
  EXPECT_NE(key_hash("", "ab"), key_hash("a", "b"));
  // The hash uses all of a name, for any length, and sets low and high bits.
  for (std::size_t length = 0; length < 20; ++length) {
    std::set<std::uint32_t> hashes, low, high;
    for (int i = 10000; i < 20000; ++i) {
      const std::uint32_t hash = key_hash("ns", std::string(length, 'x') + std::to_string(i));
      hashes.insert(hash);
      low.insert(hash & 0xFFF);
      high.insert(hash >> 20);
    }
    EXPECT_GT(hashes.size(), 9990u) << length;
    EXPECT_GT(low.size(), 3500u) << length;
    EXPECT_GT(high.size(), 3500u) << length;
  }
}

TEST(ObjectTest, ReportsItsSize) {
  EXPECT_LT(Object::parse("{}").memory_size(), 64u);
  EXPECT_LT(Object::parse(kPod).memory_size(), std::string_view(kPod).size());
}

TEST(ObjectTest, PrettyJsonIsIndented) {
  EXPECT_EQ(Object::parse(R"({"a":[1,{"b":"c"}],"d":{}})").to_pretty_json(4),
            "{\n    \"a\": [\n        1,\n        {\n            \"b\": \"c\"\n        }\n    ],\n"
            "    \"d\": {}\n}");
}

TEST(ObjectTest, FromADocument) {
  auto document = test::parse_json(kPod);
  const Object before = Object::from(document);
  EXPECT_EQ(before, Object::parse(kPod));
  document["metadata"]["name"].SetString("changed", document.GetAllocator());
  document["metadata"].AddMember("generation", 5, document.GetAllocator());
  const Object after = Object::from(document);
  EXPECT_EQ(after.name(), "changed");
  EXPECT_EQ(after.metadata().generation(), 5);
  EXPECT_EQ(before.name(), "a");
}

TEST(ObjectTest, RejectsValuesThatJsonCannotExpress) {
  const auto from = [](auto value) {
    rapidjson::Document document(rapidjson::kObjectType);
    document.AddMember("a", value, document.GetAllocator());
    return Object::from(document);
  };
  EXPECT_THROW(Object::from(test::parse_json("[]")), DecodeError);
  EXPECT_THROW(Object::from(test::parse_json("null")), DecodeError);
  EXPECT_THROW(from(std::numeric_limits<double>::infinity()), DecodeError);
  EXPECT_THROW(from(std::numeric_limits<double>::quiet_NaN()), DecodeError);
  EXPECT_THROW(from(rapidjson::StringRef("\xFF")), DecodeError);
  EXPECT_EQ(lookout::test::held(from(1.5))["a"].as_double(), 1.5);
  rapidjson::Document key(rapidjson::kObjectType);
  key.AddMember(rapidjson::StringRef("\xFF"), 1, key.GetAllocator());
  EXPECT_THROW(Object::from(key), DecodeError);
}

TEST(ObjectTest, HandlesMayBeUsedFromManyThreads) {
  constexpr int kThreads = 4;
  constexpr int kRounds = 5000;
  const Object shared = Object::parse(kPod);
  std::vector<Object> slots(kThreads, shared);
  std::barrier start(kThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      start.arrive_and_wait();
      auto& slot = slots[static_cast<std::size_t>(t)];
      for (int i = 0; i < kRounds; ++i) {
        Object copy = shared;
        slot = std::move(copy);
        Object last = Object::parse(R"({"metadata":{"name":"own"}})");
        std::swap(slot, last);
        if (last.name() != "a" || slot.name() != "own" || last.labels()["app"].as_string() != "web")
          ADD_FAILURE();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(shared.key(), "b/a");
}

TEST(ObjectTest, TheLastHandleMayEndOnAnyThread) {
  for (int round = 0; round < 200; ++round) {
    Object object = Object::parse(kPod);
    std::barrier start(3);
    const auto read_and_drop = [&start](Object mine) {
      start.arrive_and_wait();
      if (mine.key() != "b/a") ADD_FAILURE();
    };
    std::thread one(read_and_drop, object);
    std::thread two(read_and_drop, std::move(object));
    start.arrive_and_wait();
    one.join();
    two.join();
  }
}

}  // namespace
}  // namespace lookout::api
