// Objects at the nesting limit, and the names of unreadable objects.
#include <gtest/gtest.h>
#include <pthread.h>

#include <cstddef>
#include <functional>
#include <string>

#include "api/object_key.h"
#include "lookout/api/detail/limits.h"
#include "lookout/api/error.h"
#include "lookout/api/json.h"
#include "lookout/api/protobuf.h"
#include "tests/api/protobuf_bytes.h"
#include "tests/api/recordings.h"
#include "tests/support/matchers.h"

namespace lookout::api {
namespace {

using detail::key_in_json;
using detail::key_in_protobuf;
using test::decode_list;
using test::decode_watch;

/// An object with this many levels, half of them arrays.
std::string nested(std::size_t levels, std::string_view more = "") {
  std::string out = R"({"kind":"Thing","apiVersion":"x.io/v1","metadata":{"name":"deep",)"
                    R"("namespace":"shop","resourceVersion":"7"},)";
  out.append(more).append("\"spec\":");
  std::string close;
  for (std::size_t level = 2; level <= levels; ++level) {
    const bool object = level % 2 == 0 && level != levels;
    out += object ? "{\"a\":" : "[";
    close += object ? '}' : ']';
  }
  out.append(close.rbegin(), close.rend());
  return out + "}";
}

/// Runs `work` with a stack of 256 KiB, too small for deep recursion.
void on_a_short_stack(std::function<void()> work) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 256u << 10), 0);
  pthread_t thread{};
  const auto run = [](void* function) -> void* {
    (*static_cast<std::function<void()>*>(function))();
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, run, &work), 0);
  pthread_attr_destroy(&attributes);
  ASSERT_EQ(pthread_join(thread, nullptr), 0);
}

TEST(HiddenObjectTest, ReadsObjectsOfTheMaximumDepthOfKubeApiserver) {
  on_a_short_stack([] {
    // Both parsers: FastJson rejects the escape.
    for (const std::string_view more : {"", "\"x\":[\"\\u00e4\"],"}) {
      const std::string object = nested(kMaxServedDepth, more);
      const auto list = decode_list("{\"items\":[" + object + "]}");
      EXPECT_THAT(list.malformed, IsEmpty());
      ASSERT_THAT(list.items, SizeIs(1));
      const auto watch = decode_watch("{\"type\":\"DELETED\",\"object\":" + object + "}");
      EXPECT_THAT(watch.malformed, IsEmpty());
      ASSERT_THAT(watch.events, SizeIs(1));
      // The operations that apply to every object.
      EXPECT_EQ(list.items[0], watch.events[0].object);
      EXPECT_EQ(list.items[0].key(), "shop/deep");
      if (more.empty()) {
        EXPECT_EQ(list.items[0].to_json().size(), object.size());
      }
      EXPECT_FALSE(list.items[0].to_pretty_json(0).empty());
      StreamOptions options;
      options.projection = Projection::drop({"metadata.managedFields", "spec.nothing"});
      EXPECT_THAT(decode_list("{\"items\":[" + object + "]}", options).items, SizeIs(1));
    }
  });
}

/// The maximum size of an object in etcd, at the innermost level.
TEST(HiddenObjectTest, ReadsALargeAndDeepObject) {
  std::string object = nested(kMaxServedDepth - 1);
  const std::size_t bottom = object.find("[]");
  ASSERT_NE(bottom, std::string::npos);
  for (const std::size_t size : {1u << 10, 1u << 14, 3u << 19}) {
    std::string large = object;
    large.insert(bottom + 1, "\"" + std::string(size, 'x') + "\"");
    const auto list = decode_list("{\"items\":[" + large + "]}");
    EXPECT_THAT(list.malformed, IsEmpty());
    ASSERT_THAT(list.items, SizeIs(1));
    EXPECT_EQ(list.items[0].to_json().size(), large.size());
  }
}

TEST(HiddenObjectTest, DeeperObjectsAreRejectedByName) {
  for (const std::string_view more : {"", "\"x\":[\"\\u00e4\"],"}) {
    const std::string object = nested(kMaxServedDepth + 1, more);
    const auto list = decode_list("{\"items\":[" + object + "]}");
    ASSERT_THAT(list.malformed, SizeIs(1));
    EXPECT_THAT(list.malformed[0].reason, HasSubstr("nested too deeply"));
    EXPECT_EQ(list.malformed[0].key, "shop/deep");
    const auto watch = decode_watch("{\"type\":\"DELETED\",\"object\":" + object + "}");
    ASSERT_THAT(watch.malformed, SizeIs(1));
    EXPECT_EQ(watch.malformed[0].key, "shop/deep");
  }
}

TEST(HiddenObjectTest, RecursiveFunctionsRejectIt) {
  const auto list = decode_list("{\"items\":[" + nested(kMaxServedDepth) + "]}");
  ASSERT_THAT(list.items, SizeIs(1));
  EXPECT_THROW(list.items[0].to_document(), DecodeError);
  EXPECT_THROW(Object::parse(nested(kMaxDepth + 1)), DecodeError);
  EXPECT_NO_THROW(Object::parse(nested(kMaxDepth)).to_document());
}

TEST(HiddenObjectTest, ANameIsFoundDespiteOtherErrors) {
  const std::string metadata =
      R"("metadata":{"labels":{"name":"no"},"name":"web","namespace":"shop"})";
  for (const std::string rest : {R"("x":1e400)", R"("x":{"y":tru})", R"("x":[{]])",
                                 "\"x\":\"\xFF\"", R"("x":{"metadata":{"name":"no"}})"}) {
    EXPECT_EQ(key_in_json("{" + metadata + "," + rest + "}", false),
              rest[4] == '1' ? "" : "shop/web")
        << rest;
  }
  EXPECT_EQ(key_in_json("{\"type\":\"ADDED\",\"object\":{" + metadata + "}}", true), "shop/web");
  EXPECT_EQ(key_in_json(R"({"metadata":{"name":"n"}})", false), "n");
}

TEST(HiddenObjectTest, ANameIsFoundInProtobuf) {
  using test::bytes_field;
  const std::string metadata = bytes_field(1, bytes_field(1, "web") + bytes_field(3, "shop"));
  EXPECT_EQ(key_in_protobuf(metadata + bytes_field(2, "whatever")), "shop/web");
  EXPECT_EQ(key_in_protobuf(bytes_field(1, bytes_field(1, "web"))), "web");
  EXPECT_EQ(key_in_protobuf(metadata + "\x12\x7F"), "") << "it is cut off";
  EXPECT_EQ(key_in_protobuf(bytes_field(2, "whatever")), "");
}

TEST(HiddenObjectTest, AnUncertainNameIsNotReported) {
  for (const std::string text :
       {R"({"metadata":{"name":"web"})", R"({"metadata":{"name":"web"}}})",
        R"({"metadata":"name"})", R"({"metadata":{"name":["web"]}})",
        R"({"metadata":{"name":{"a":"b"}}})", R"({"metadata":{}})",
        R"({"metadata":{"name":"a b"}})", R"({"metadata":{"name":"web"},"metadata":{}})", "", "[]",
        "{\"metadata\":{\"name\":\"\xC3\xA4\"}}"}) {
    EXPECT_EQ(key_in_json(text, false), "") << text;
  }
}

}  // namespace
}  // namespace lookout::api
