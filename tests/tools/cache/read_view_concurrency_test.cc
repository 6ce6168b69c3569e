#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "lookout/tools/cache/indexer.h"
#include "tests/support/objects.h"
#include "tests/support/sanitizers.h"

namespace lookout::cache {
namespace {

using test::pod;

constexpr std::size_t kBatches = test::kSanitized ? 4'000 : 40'000;
constexpr std::size_t kPairs = 60;

std::uint64_t version_of(const api::Object& object) {
  return std::stoull(std::string(object.resource_version()));
}

/// The pairs a/N and b/N are put together and removed together: a reader that sees one of them sees
/// at least the same version of the other.
TEST(ReadViewConcurrencyTest, LookUpsNeverGoBackInTimeNorSeeHalfABatch) {
  Indexer store;
  std::atomic<bool> done{false};
  std::atomic<std::size_t> seen{0};
  std::vector<std::thread> readers;
  const auto reader = [&](auto find) {
    std::vector<std::uint64_t> newest(kPairs);
    std::minstd_rand random(7);
    while (!done) {
      const std::size_t i = random() % kPairs;
      const std::string name = std::to_string(i);
      const std::uint64_t first = find("a", name);
      // A snapshot that is taken after a look-up is at least as new.
      const auto shown = store.snapshot().get("b", name);
      const std::uint64_t second = find("b", name);
      if (first != 0) {
        ASSERT_GE(first, newest[i]) << "time went backwards";
        newest[i] = first;
        ++seen;
      }
      if (shown) {
        ASSERT_GE(version_of(shown), first);
      }
      if (second != 0) {
        ASSERT_GE(second, newest[i]) << "half a batch";
        newest[i] = second;
      }
    }
  };
  const auto value = [](const api::Object& object) { return object ? version_of(object) : 0; };
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back(reader, [&](const char* ns, const std::string& name) {
      return value(store.get(ns, name));
    });
    readers.emplace_back(reader, [&](const char* ns, const std::string& name) {
      const auto view = store.read();
      return value(*view.get(ns, name));
    });
    readers.emplace_back(reader, [&](const char* ns, const std::string& name) {
      const ObjectName key{ns, name};
      const auto view = store.read();
      return value(view.get_many({&key, 1})[0]);
    });
  }
  std::minstd_rand random(3);
  for (std::size_t i = 1; i < kBatches; ++i) {
    // The number of objects rises and falls, so the table is replaced by larger and smaller ones.
    const std::size_t most = 1 + (i / 200) % 2 * (kPairs - 1);
    const std::string key = std::to_string(random() % kPairs);
    std::vector<StoreChange> changes;
    for (const char* ns : {"a/", "b/"}) {
      if (random() % kPairs < most) {
        changes.push_back({StoreChange::Type::kPut, pod(ns + key, i)});
      } else {
        changes.push_back({StoreChange::Type::kRemove, pod(ns + key, i)});
      }
    }
    // (Both or none.)
    changes[1].type = changes[0].type;
    store.apply(changes);
    if (i % 1000 == 0) store.replace({pod("a/0", i), pod("b/0", i)}, std::to_string(i));
  }
  done = true;
  for (auto& thread : readers) thread.join();
  EXPECT_GT(seen, 0u);
}

/// Views on many threads at once, more than the store has reader slots, while the objects that they
/// lend are replaced.
TEST(ReadViewConcurrencyTest, LentObjectsLiveAsLongAsTheView) {
  Indexer store;
  for (std::size_t i = 0; i < kPairs; ++i) store.put(pod("a/" + std::to_string(i), 1));
  std::atomic<bool> done{false};
  std::vector<std::string> names;
  for (std::size_t i = 0; i < kPairs; ++i) names.push_back(std::to_string(i));
  std::vector<ObjectName> keys;
  for (const std::string& name : names) keys.push_back({"a", name});
  std::vector<std::thread> readers;
  for (int r = 0; r < 20; ++r) {
    readers.emplace_back([&] {
      while (!done) {
        const auto view = store.read();
        const auto other = store.read();
        const auto many = other.get_many(keys);
        for (std::size_t i = 0; i < kPairs; ++i) {
          const std::string& name = names[i];
          const auto lent = view.get("a", name);
          const auto again = other.get_by_key("a/" + name);
          ASSERT_TRUE(lent && again && many[i]);
          std::this_thread::yield();
          ASSERT_EQ(lent->name(), name);
          ASSERT_EQ(many[i].name(), name);
          ASSERT_GE(version_of(*lent), version_of(many[i]));
          ASSERT_GE(version_of(*again), version_of(*lent));
        }
      }
    });
  }
  for (std::size_t i = 2; i < kBatches / 4; ++i)
    store.put(pod("a/" + std::to_string(i % kPairs), i));
  done = true;
  for (auto& thread : readers) thread.join();
}

}  // namespace
}  // namespace lookout::cache
