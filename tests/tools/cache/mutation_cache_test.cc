#include "lookout/tools/cache/mutation_cache.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "lookout/api/error.h"
#include "lookout/testing/fake_clock.h"
#include "tests/support/matchers.h"

namespace lookout::cache {
namespace {

using namespace std::chrono_literals;

api::Object thing(std::string_view name, int version, std::string_view uid = "1",
                  std::string_view node = "n1") {
  return api::Object::parse(fmt::format(
      R"({{"apiVersion":"v1","kind":"Pod","metadata":{{"namespace":"a","name":"{}","uid":"{}","resourceVersion":"{}"}},"spec":{{"nodeName":"{}"}}}})",
      name, uid, version, node));
}

class MutationCacheTest : public testing::Test {
 protected:
  MutationCacheTest() { options_.clock = clock_; }
  MutationCache& make() {
    cache_ = std::make_unique<MutationCache>(store_, options_);
    return *cache_;
  }
  std::string version(std::string_view name) {
    return std::string(cache_->get("a/" + std::string(name)).resource_version());
  }
  std::vector<std::string> on_node(std::string_view node) {
    std::vector<std::string> out;
    for (const auto& object : cache_->by_index("node", node))
      out.push_back(std::string(object.name()) + "@" + std::string(object.resource_version()));
    return out;
  }

  const std::shared_ptr<test::FakeClock> clock_ = std::make_shared<test::FakeClock>();
  const std::shared_ptr<Indexer> store_ = std::make_shared<Indexer>(
      Indexers{{"node", [](const api::Object& object, IndexValues& values) {
                  values.add(object["spec"]["nodeName"].as_string());
                }}});
  MutationCacheOptions options_;
  std::unique_ptr<MutationCache> cache_;
};

TEST_F(MutationCacheTest, ReturnsTheNewerOfStoreAndWrite) {
  auto& cache = make();
  store_->add(thing("x", 5));
  EXPECT_EQ(version("x"), "5");
  cache.mutation(thing("x", 7));
  EXPECT_EQ(version("x"), "7");
  cache.mutation(thing("x", 6));
  EXPECT_EQ(version("x"), "7") << "an answer that comes late";
  store_->add(thing("x", 10));
  EXPECT_EQ(version("x"), "10") << "as a number, not as text";
}

TEST_F(MutationCacheTest, OmitsWritesThatTheStoreLacksByDefault) {
  auto& cache = make();
  cache.mutation(thing("x", 7));
  EXPECT_FALSE(cache.get("a/x")) << "it may be gone already";
  EXPECT_THAT(on_node("n1"), IsEmpty());
}

TEST_F(MutationCacheTest, AnIndexOmitsExpiredWrites) {
  options_.include_adds = true;
  options_.ttl = 60s;
  auto& cache = make();
  cache.mutation(thing("x", 7));
  clock_->advance(60s - 1ms);
  EXPECT_THAT(on_node("n1"), ElementsAre("x@7"));
  clock_->advance(1ms);
  EXPECT_THAT(on_node("n1"), IsEmpty());
}

TEST_F(MutationCacheTest, CanIncludeWritesThatTheStoreLacks) {
  options_.include_adds = true;
  auto& cache = make();
  cache.mutation(thing("x", 7));
  EXPECT_EQ(version("x"), "7");
  store_->add(thing("y", 1));
  cache.mutation(thing("y", 2));
  cache.mutation(thing("z", 3, "3", "n2"));
  EXPECT_THAT(on_node("n1"), UnorderedElementsAre("x@7", "y@2"));
  EXPECT_THAT(on_node("n2"), ElementsAre("z@3"));
  EXPECT_THROW(cache.by_index("no such", "n1"), InvalidArgument);
}

TEST_F(MutationCacheTest, AnIndexFunctionMayUseTheCache) {
  options_.include_adds = true;
  auto& cache = make();
  cache.mutation(thing("x", 5));
  std::size_t found = 0;
  store_->add_indexers({{"curious", [&](const api::Object& object, IndexValues& values) {
                           found += cache.get(object.key()) ? 1u : 0u;
                           values.add("all");
                         }}});
  EXPECT_EQ(cache.by_index("curious", "all").size(), 1u);
  EXPECT_EQ(found, 1u);
}

TEST_F(MutationCacheTest, EvictsWritesAfterTheirTtl) {
  options_.include_adds = true;
  auto& cache = make();
  cache.mutation(thing("x", 7));
  clock_->advance(5min - 1ns);
  EXPECT_EQ(version("x"), "7");
  clock_->advance(1ns);
  EXPECT_FALSE(cache.get("a/x"));
  EXPECT_THAT(on_node("n1"), IsEmpty());
}

TEST_F(MutationCacheTest, KeepsWritesWithALongTtl) {
  options_.ttl = Clock::Duration::max();
  auto& cache = make();
  store_->add(thing("x", 5));
  cache.mutation(thing("x", 7));
  clock_->advance(24h);
  EXPECT_EQ(version("x"), "7");
}

TEST_F(MutationCacheTest, EvictsTheLeastRecentlyUsedWrite) {
  options_.include_adds = true;
  options_.max_size = 2;
  auto& cache = make();
  cache.mutation(thing("x", 1));
  cache.mutation(thing("y", 2));
  EXPECT_EQ(version("x"), "1");
  cache.mutation(thing("z", 3));
  EXPECT_EQ(version("y"), "");
  EXPECT_EQ(version("x"), "1");
  EXPECT_EQ(version("z"), "3");
}

/// A notification of the informer after a write of version 5, uid 1.
struct Told {
  const char* name;
  int version;
  const char* uid;
  bool update_forgets;
  bool deletion_forgets;
};
class MutationCacheToldTest : public MutationCacheTest, public testing::WithParamInterface<Told> {
 protected:
  MutationCache& make_with_a_write() {
    options_.include_adds = true;
    auto& cache = make();
    cache.mutation(thing("x", 5));
    return cache;
  }
  const api::Object told_ = thing("x", GetParam().version, GetParam().uid);
};
TEST_P(MutationCacheToldTest, AnAdditionOrUpdateReplacesAWriteThatIsNotNewer) {
  make_with_a_write().on_add_or_update(told_);
  EXPECT_EQ(version("x"), GetParam().update_forgets ? "" : "5");
}
TEST_P(MutationCacheToldTest, ADeletionEvictsAWriteOfTheSameObject) {
  make_with_a_write().on_delete(told_);
  EXPECT_EQ(version("x"), GetParam().deletion_forgets ? "" : "5");
  EXPECT_EQ(on_node("n1").size(), GetParam().deletion_forgets ? 0u : 1u);
}
INSTANTIATE_TEST_SUITE_P(, MutationCacheToldTest,
                         testing::Values(Told{"Older", 4, "1", false, true},
                                         Told{"Same", 5, "1", true, true},
                                         Told{"Newer", 6, "1", true, true},
                                         Told{"NewerOfAnotherLife", 6, "2", true, true},
                                         Told{"OlderOfAnotherLife", 4, "2", false, false}),
                         [](const auto& test) { return test.param.name; });

TEST_F(MutationCacheTest, AWriteThatReturnsAfterTheDeletionStaysDeleted) {
  options_.include_adds = true;
  auto& cache = make();
  store_->add(thing("x", 4));
  store_->remove(thing("x", 6));
  cache.on_delete(thing("x", 6));
  for (const int late : {5, 6, 7}) {
    cache.mutation(thing("x", late));
    EXPECT_EQ(version("x"), "") << late << ": of the life that has ended";
  }
  cache.mutation(thing("x", 5, "0"));
  EXPECT_EQ(version("x"), "") << "of a life before";
  EXPECT_THAT(on_node("n1"), IsEmpty());
}

TEST_F(MutationCacheTest, AnObjectMayBeRecreatedAfterItsDeletion) {
  options_.include_adds = true;
  auto& cache = make();
  cache.on_delete(thing("x", 6));
  cache.mutation(thing("x", 7, "2"));
  EXPECT_EQ(version("x"), "7");
  cache.on_delete(thing("x", 8, "2"));
  store_->add(thing("x", 9, "3"));
  EXPECT_EQ(version("x"), "9") << "the store knows best";
  store_->remove_key("a/x");
  cache.mutation(thing("x", 8, "2"));
  EXPECT_EQ(version("x"), "8") << "the mark went when the store had the object again";
}

}  // namespace
}  // namespace lookout::cache
