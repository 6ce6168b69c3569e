#include "apiserver/storage/etcd3/recent_writes.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <thread>
#include <vector>

#include "apiserver/storage/etcd3/codec.h"

namespace lookout::apiserver::storage::etcd3 {
namespace {

api::Object named(const std::string& name) {
  return api::Object::parse(R"({"metadata":{"name":")" + name + R"("}})");
}
api::Object named(const std::string& name, const std::string& revision) {
  return api::Object::parse(R"({"metadata":{"name":")" + name + R"(","resourceVersion":")" +
                            revision + R"("}})");
}

TEST(RecentWrites, AreFoundByALaterEvent) {
  RecentWrites writes;
  EXPECT_FALSE(writes.find("a", 7));
  const auto write = writes.begin("a", named("a"));
  const api::Object written = writes.written(write, 7, named("a"));
  EXPECT_EQ(written, named("a", "7"));
  const api::Object found = writes.find("a", 7);
  EXPECT_EQ(found.name().data(), written.name().data());
  EXPECT_FALSE(writes.find("a", 7)) << "both have it";
}

TEST(RecentWrites, AreFoundByAnEarlierEvent) {
  RecentWrites writes;
  const auto write = writes.begin("a", named("a"));
  const api::Object found = writes.find("a", 7);
  EXPECT_EQ(found, named("a", "7"));
  const api::Object written = writes.written(write, 7, named("a"));
  EXPECT_EQ(found.name().data(), written.name().data());
  EXPECT_FALSE(writes.find("a", 7));
}

// A restored etcd may reuse a revision for another value, and another server may write the same
// value at another revision.
TEST(RecentWrites, AreNotConfusedWithOthers) {
  RecentWrites writes;
  const auto write = writes.begin("a", named("a"));
  EXPECT_EQ(writes.written(write, 7, named("a")), named("a", "7"));
  EXPECT_FALSE(writes.find("b", 7));
  EXPECT_FALSE(writes.find("a", 8));
  EXPECT_EQ(writes.find("a", 7), named("a", "7"));
  // The event of another server's equal write is correct, and so is the response to this write.
  const auto second = writes.begin("a", named("a"));
  EXPECT_EQ(writes.find("a", 9), named("a", "9"));
  EXPECT_EQ(writes.written(second, 10, named("a")), named("a", "10"));
  EXPECT_EQ(writes.find("a", 10), named("a", "10"));
}

// The response to a write is built from etcd's value.
TEST(ValuesOfWrites, BecomeObjectsOfTheirRevision) {
  for (const char* metadata :
       {R"({"name":"a"})", R"({"name":"a","resourceVersion":"6"})", R"({"resourceVersion":"6"})",
        R"({"name":"a","uid":"u","resourceVersion":"6","generation":1,"labels":{"x":"{\"y\""}})",
        R"({"uid":"u","creationTimestamp":null,"what":{"resourceVersion":"5"}})", R"({"what":1})",
        R"({"labels":{}})", "{}"}) {
    const api::Object object = api::Object::parse(fmt::format(
        R"({{"kind":"Pod","metadata":{},"spec":{{"resourceVersion":"4"}}}})", metadata));
    const Codec::Encoded encoded = json_codec()->encode_for(object);
    EXPECT_EQ(json_codec()->json_of(encoded, 7), at_revision(object, 7).to_json());
  }
}

TEST(RecentWrites, AreEvicted) {
  RecentWrites writes;
  std::vector<std::uint64_t> all;
  for (int i = 0; i < 100; ++i) all.push_back(writes.begin(std::to_string(i), named("a")));
  EXPECT_FALSE(writes.find("0", 1));
  EXPECT_EQ(writes.written(all[0], 1, named("a")), named("a", "1"));
  EXPECT_EQ(writes.find("99", 5), named("a", "5"));
  // Long values are not kept.
  const std::string value(100000, 'x');
  const auto write = writes.begin(value, named("b"));
  EXPECT_EQ(writes.written(write, 6, named("b")), named("b", "6"));
  EXPECT_FALSE(writes.find(value, 6));
}

TEST(RecentWrites, AreSharedByThreads) {
  RecentWrites writes;
  const auto write_many = [&](int from) {
    for (int i = from; i < from + 200; ++i) {
      const std::string value = std::to_string(i);
      const auto write = writes.begin(value, named("p" + value));
      const auto revision = static_cast<Revision>(i) + 1;
      std::thread event([&] {
        const api::Object found = writes.find(value, revision);
        if (found) {
          EXPECT_EQ(found, named("p" + value, std::to_string(revision)));
        }
      });
      EXPECT_EQ(writes.written(write, revision, named("p" + value)),
                named("p" + value, std::to_string(revision)));
      event.join();
    }
  };
  std::thread other([&] { write_many(1000); });
  write_many(0);
  other.join();
}

}  // namespace
}  // namespace lookout::apiserver::storage::etcd3
