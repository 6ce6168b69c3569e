#include "lookout/tools/cache/expiration_cache.h"

#include <gtest/gtest.h>

#include <memory>
#include <utility>

#include "lookout/api/error.h"
#include "lookout/testing/fake_clock.h"
#include "tests/support/matchers.h"
#include "tests/support/objects.h"

namespace lookout::cache {
namespace {

using namespace std::chrono_literals;
using test::pod;

class ExpirationCacheTest : public testing::Test {
 protected:
  static std::vector<std::string> keys(const std::vector<api::Object>& objects) {
    std::vector<std::string> out;
    for (const auto& object : objects) out.push_back(object.key());
    return out;
  }

  const std::shared_ptr<test::FakeClock> clock_ = std::make_shared<test::FakeClock>();
  ExpirationCache cache_{10s, meta_namespace_key, clock_};
};

TEST_F(ExpirationCacheTest, ExpiredObjectsAreNotFoundAndEvicted) {
  cache_.add(pod("a/x"));
  clock_->advance(10s);
  EXPECT_TRUE(cache_.get(pod("a/x"))) << "exactly so long";
  clock_->advance(1ns);
  EXPECT_THAT(cache_.list_keys(), ElementsAre("a/x")) << "nobody has come across it";
  EXPECT_FALSE(cache_.get_by_key("a/x"));
  EXPECT_THAT(cache_.list_keys(), IsEmpty());
}

TEST_F(ExpirationCacheTest, PuttingAgainRestartsTheExpiry) {
  cache_.add(pod("a/x", 1));
  clock_->advance(8s);
  cache_.update(pod("a/x", 2));
  clock_->advance(8s);
  EXPECT_EQ(cache_.get_by_key("a/x").resource_version(), "2");
  clock_->advance(3s);
  EXPECT_FALSE(cache_.get_by_key("a/x"));
  cache_.add(pod("a/x", 3));
  EXPECT_EQ(cache_.get_by_key("a/x").resource_version(), "3");
}

TEST_F(ExpirationCacheTest, AListOmitsExpiredObjects) {
  cache_.replace({pod("a/old"), pod("a/older")}, "5");
  clock_->advance(6s);
  cache_.add(pod("a/new"));
  EXPECT_THAT(keys(cache_.list()), UnorderedElementsAre("a/new", "a/old", "a/older"));
  clock_->advance(6s);
  EXPECT_THAT(keys(cache_.list()), ElementsAre("a/new"));
  EXPECT_THAT(cache_.list_keys(), ElementsAre("a/new"));
}

TEST_F(ExpirationCacheTest, ReplaceRemovesAllOtherObjects) {
  cache_.add(pod("a/x"));
  cache_.replace({pod("a/y")}, "7");
  EXPECT_THAT(keys(cache_.list()), ElementsAre("a/y"));
  EXPECT_EQ(cache_.resource_version(), "7");
  cache_.set_resource_version("8");
  EXPECT_EQ(cache_.resource_version(), "8");
  cache_.remove(pod("a/y"));
  EXPECT_THAT(cache_.list(), IsEmpty());
}

TEST_F(ExpirationCacheTest, RejectsObjectsWithoutAKey) {
  EXPECT_THROW(cache_.add(pod("a/")), InvalidArgument);
  EXPECT_THROW(cache_.replace({pod("a/x"), pod("a/")}, "1"), InvalidArgument);
  EXPECT_THAT(cache_.list(), IsEmpty());
}

TEST_F(ExpirationCacheTest, TakesAnyPolicy) {
  class Some : public ExpirationPolicy {
   public:
    bool is_expired(const api::Object& object, Clock::Duration) const override {
      return object.name() != "stays";
    }
  };
  ExpirationCache cache(std::make_unique<Some>());
  cache.replace({pod("a/x"), pod("a/stays"), pod("a/y")}, "1");
  EXPECT_FALSE(cache.get_by_key("a/x"));
  EXPECT_THAT(cache.list_keys(), UnorderedElementsAre("a/stays", "a/y"));
  EXPECT_THAT(keys(cache.list()), ElementsAre("a/stays"));
}

/// Reads the cache that calls it, and puts expired objects back.
class CuriousPolicy : public ExpirationPolicy {
 public:
  bool is_expired(const api::Object& object, Clock::Duration) const override {
    EXPECT_FALSE(cache->list_keys().empty());
    if (object.name() == "comes-back") cache->add(pod("a/comes-back", 2));
    return object.resource_version() == "1";
  }
  ExpirationCache* cache = nullptr;
};

TEST_F(ExpirationCacheTest, ItsPolicyMayUseTheCache) {
  auto policy = std::make_unique<CuriousPolicy>();
  auto& curious = *policy;
  ExpirationCache cache(std::move(policy), meta_namespace_key, clock_);
  curious.cache = &cache;
  for (const char* key : {"a/x", "a/comes-back", "a/y"}) cache.add(pod(key, 1));
  EXPECT_FALSE(cache.get_by_key("a/y"));
  EXPECT_THAT(cache.list(), IsEmpty());
  EXPECT_THAT(cache.list_keys(), ElementsAre("a/comes-back")) << "it is another one";
  EXPECT_EQ(cache.get_by_key("a/comes-back").resource_version(), "2");
}

/// Adds each expired object anew.
class RefreshingPolicy : public ExpirationPolicy {
 public:
  bool is_expired(const api::Object& object, Clock::Duration age) const override {
    if (age < 5s) return false;
    clock->advance(1s);
    cache->add(object);
    return true;
  }
  ExpirationCache* cache = nullptr;
  std::shared_ptr<test::FakeClock> clock;
};

TEST_F(ExpirationCacheTest, KeepsAnObjectThatWasAddedWhileItExpired) {
  auto policy = std::make_unique<RefreshingPolicy>();
  auto& refreshing = *policy;
  ExpirationCache cache(std::move(policy), meta_namespace_key, clock_);
  refreshing.cache = &cache;
  refreshing.clock = clock_;
  cache.add(pod("a/x"));
  clock_->advance(5s);
  EXPECT_FALSE(cache.get_by_key("a/x"));
  EXPECT_TRUE(cache.get_by_key("a/x"));
}

TEST(TtlPolicyTest, WithoutATimeNothingExpires) {
  EXPECT_FALSE(TtlPolicy(0s).is_expired({}, 1000h));
  EXPECT_FALSE(TtlPolicy(-1s).is_expired({}, 1000h));
  EXPECT_FALSE(TtlPolicy(5s).is_expired({}, 5s));
  EXPECT_TRUE(TtlPolicy(5s).is_expired({}, 6s));
}

}  // namespace
}  // namespace lookout::cache
