#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <future>
#include <latch>
#include <random>
#include <thread>
#include <utility>
#include <vector>

#include "lookout/api/error.h"
#include "lookout/base/pinned.h"
#include "lookout/tools/cache/indexer.h"
#include "tests/support/bounded_wait.h"
#include "tests/support/objects.h"
#include "tests/support/sanitizers.h"

namespace lookout::cache {
namespace {

using test::pod;

constexpr std::size_t kWrites = test::kSanitized ? 4'000 : 40'000;

constexpr std::size_t kKeys = 40;
constexpr std::size_t kNodes = 7;

std::string key(std::size_t i) { return "a/" + std::to_string(i % kKeys); }
api::Object version(std::size_t i) {
  return pod(key(i), i, {{}, "n" + std::to_string(i % kNodes), {}});
}
void index_by_node(const api::Object& object, IndexValues& values) {
  values.add(object["spec"]["nodeName"].as_string());
}
std::uint64_t number(const api::Object& object) {
  return std::stoull(std::string(object.resource_version()));
}

/// The objects and the index of one snapshot agree.
void expect_consistent(const Snapshot& snapshot) {
  std::size_t n = 0;
  std::uint64_t newest = 0;
  for (const auto& object : snapshot) {
    ++n;
    newest = std::max(newest, number(object));
    ASSERT_TRUE(snapshot.get(object.ns(), object.name()).same(object));
  }
  ASSERT_EQ(n, snapshot.size());
  std::size_t indexed = 0;
  for (const auto& node : snapshot.index_values("node")) {
    std::size_t in_bucket = 0;
    const auto bucket = snapshot.by_index("node", node);
    for (const auto& object : bucket) {
      ++in_bucket;
      ASSERT_EQ(object["spec"]["nodeName"].as_string(), node);
      ASSERT_TRUE(snapshot.get(object.ns(), object.name()).same(object));
    }
    ASSERT_EQ(in_bucket, bucket.size());
    indexed += in_bucket;
  }
  ASSERT_EQ(indexed, n);
  // Each change carries the number of the previous one.
  ASSERT_TRUE(n == 0 || snapshot.resource_version() == std::to_string(newest));
}

TEST(IndexerConcurrencyTest, ReadersSeeConsistentSnapshots) {
  Indexer store({{"node", index_by_node}});
  std::atomic<bool> done{false};
  std::vector<std::thread> readers;
  readers.emplace_back([&] {
    std::uint64_t last = 0;
    while (!done) {
      const Snapshot snapshot = store.snapshot();
      EXPECT_GE(snapshot.version(), last);
      last = snapshot.version();
      expect_consistent(snapshot);
    }
  });
  readers.emplace_back([&] {  // keeps old snapshots
    std::vector<Snapshot> held;
    while (!done) {
      held.push_back(store.snapshot());
      if (held.size() > 20) held.erase(held.begin(), held.begin() + 10);
      expect_consistent(held.front());
    }
    for (const auto& snapshot : held) expect_consistent(snapshot);
  });
  readers.emplace_back([&] {
    std::vector<std::uint64_t> last(kKeys);
    for (std::size_t i = 0; !done; ++i) {
      const auto object = store.get("a", std::to_string(i % kKeys));
      if (!object) continue;
      ASSERT_EQ(object.key(), key(i));
      ASSERT_GE(number(object), last[i % kKeys]) << "time went backwards";
      last[i % kKeys] = number(object);
      const auto later = store.get_by_key(object.key());
      ASSERT_TRUE(!later || number(later) >= number(object));
      ASSERT_LE(store.size(), kKeys);
    }
  });
  std::minstd_rand random(11);
  for (std::size_t i = 1; i < kWrites;) {
    std::vector<StoreChange> changes;
    for (auto n = 1 + random() % 5; n > 0; --n) {
      changes.push_back({StoreChange::Type::kPut, version(i)});
      // Remove an object, never the newest one.
      changes.push_back({StoreChange::Type::kRemove, version(i + kKeys / 2)});
      ++i;
    }
    store.apply(changes, std::to_string(i - 1));
  }
  done = true;
  for (auto& reader : readers) reader.join();
  expect_consistent(store.snapshot());
}

/// Each update changes one object, and the keys take turns: a reader that has seen number n sees a
/// number above n - kKeys for every key. Most of these updates change a slot in place.
TEST(IndexerConcurrencyTest, UpdatesOfOneObjectAreSeenInOrder) {
  Indexer store({{"node", index_by_node}});
  const auto put = [&](std::size_t i) { store.put(pod(key(i), i, {{}, "n", {}})); };
  for (std::size_t i = 0; i < kKeys; ++i) put(i);
  const auto expect_moment = [](const Snapshot& snapshot) {
    std::uint64_t newest = 0;
    std::size_t n = 0;
    for (const auto& object : snapshot) newest = std::max(newest, number(object));
    for (const auto& object : snapshot.by_index("node", "n")) {
      ASSERT_GT(number(object) + kKeys, newest);
      ASSERT_EQ(object.key(), key(number(object)));
      ++n;
    }
    ASSERT_EQ(n, kKeys);
  };
  std::atomic<bool> done{false};
  std::vector<std::thread> readers;
  readers.emplace_back([&] {
    std::vector<Snapshot> held;
    while (!done) {
      held.push_back(store.snapshot());
      if (held.size() > 5) held.clear();
      if (!held.empty()) expect_moment(held.front());
    }
  });
  const auto look = [&](auto find) {
    std::uint64_t newest = 0;
    for (std::size_t i = 0; !done; i += 7) {
      const std::string name = std::to_string(i % kKeys);
      const std::uint64_t seen = find(name);
      ASSERT_GT(seen + kKeys, newest) << "an older look has seen more";
      newest = std::max(newest, seen);
    }
  };
  readers.emplace_back(look, [&](const std::string& name) { return number(store.get("a", name)); });
  readers.emplace_back(look, [&](const std::string& name) {
    const auto view = store.read();
    const auto first = view.get("a", name);
    const auto second = view.get("a", name);
    EXPECT_GE(number(*second), number(*first));
    return number(*first);
  });
  readers.emplace_back(
      look, [&](const std::string& name) { return number(store.snapshot().get("a", name)); });
  for (std::size_t i = kKeys; i < kWrites; ++i) put(i);
  done = true;
  for (auto& reader : readers) reader.join();
  expect_moment(store.snapshot());
}

TEST(IndexerConcurrencyTest, WritersTakeTurns) {
  Indexer store({{"node", index_by_node}});
  constexpr std::size_t kWriters = 3;
  constexpr std::size_t kEach = kWrites / 10;
  std::latch begin(kWriters);
  std::vector<std::thread> writers;
  std::atomic<std::size_t> met_nothing{0};
  for (std::size_t w = 0; w < kWriters; ++w) {
    writers.emplace_back([&, w] {
      begin.count_down();
      lookout::test::wait_for(begin);
      for (std::size_t i = 0; i < kEach; ++i) {
        const std::string mine = "w" + std::to_string(w) + "/" + std::to_string(i);
        store.put(pod(mine, 1, {{}, "n" + std::to_string(i % kNodes), {}}));
        if (!store.put(pod("shared/" + std::to_string(i % 3), i, {{}, "s", {}}))) ++met_nothing;
      }
    });
  }
  for (auto& writer : writers) writer.join();
  EXPECT_EQ(met_nothing, 3u) << "each shared key was new to one writer only";
  EXPECT_EQ(store.size(), kWriters * kEach + 3);
  std::size_t indexed = 0;
  for (const auto& node : store.index_values("node"))
    indexed += store.snapshot().by_index("node", node).size();
  EXPECT_EQ(indexed, store.size());
}

TEST(IndexerConcurrencyTest, ReplaceRemovesEverythingElseDuringWrites) {
  Indexer store;
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (std::size_t i = 0; !done; ++i) store.put(pod("other/" + std::to_string(i % 50), i));
  });
  for (std::size_t i = 0; i < 200; ++i) {
    store.replace({pod("mine/x", i), pod("mine/y", i)}, std::to_string(i));
    // Other objects came after the replacement.
    const Snapshot snapshot = store.snapshot();
    EXPECT_TRUE(snapshot.get("mine", "x") && snapshot.get("mine", "y"));
  }
  done = true;
  writer.join();
  store.replace({pod("mine/z")}, "1000");
  EXPECT_EQ(store.size(), 1u);
}

/// A store with a thread that changes "busy/x" all the time.
class BusyStore : public base::Pinned {
 public:
  explicit BusyStore(Indexers indexers) : store(std::move(indexers)) {}

  /// Runs `changes` while the thread writes, after its first write.
  template <class F>
  void meanwhile(F changes) {
    std::atomic<bool> done{false};
    std::jthread writer([&] {
      for (std::size_t i = 1; !done; ++i) {
        store.put(pod("busy/x", i));
        ++writes_;
      }
    });
    while (writes_ == 0) std::this_thread::yield();
    auto changed = std::async(std::launch::async, changes);
    lookout::test::wait_for(changed);
    done = true;
  }
  /// For an index function: another writer then comes first in each round of a change, as long as it
  /// is not held up.
  void wait_for_a_write() const {
    const std::size_t before = writes_;
    const auto deadline = std::chrono::steady_clock::now() + std::chrono::milliseconds(20);
    while (writes_ == before && std::chrono::steady_clock::now() < deadline)
      std::this_thread::yield();
  }

  Indexer store;

 private:
  std::atomic<std::size_t> writes_{0};
};

class BusyStoreTest : public testing::Test {
 protected:
  BusyStore busy_{Indexers{{"slow", [this](const api::Object& object, IndexValues&) {
                              if (object.ns() == "a" && object.name() == "0")
                                busy_.wait_for_a_write();
                            }}}};
};

TEST_F(BusyStoreTest, LargeBatchesEnd) {
  std::vector<api::Object> objects;
  std::vector<StoreChange> changes;
  for (const char* key : {"a/0", "a/1", "a/2"}) {
    objects.push_back(pod(key));
    changes.push_back({StoreChange::Type::kPut, objects.back()});
  }
  busy_.meanwhile([&] {
    busy_.store.apply(changes);
    busy_.store.replace(objects, "2");
    busy_.store.replace({}, "3");
    busy_.store.apply(changes);
  });
  busy_.store.remove_key("busy/x");
  EXPECT_EQ(busy_.store.size(), objects.size());
}

TEST_F(BusyStoreTest, ASlowChangeEnds) {
  busy_.meanwhile([&] {
    busy_.store.put(pod("a/0", 1));
    busy_.store.put(pod("a/0", 2));
  });
  EXPECT_EQ(busy_.store.get_by_key("a/0").resource_version(), "2");
}

TEST_F(BusyStoreTest, AnIndexCanBeAdded) {
  const auto slow = [this](const api::Object& object, IndexValues& values) {
    values.add(object.ns());
    busy_.wait_for_a_write();
  };
  busy_.meanwhile([&] { busy_.store.add_indexers({{"added", slow}}); });
  EXPECT_EQ(busy_.store.by_index("added", "busy").size(), 1u);
}

/// A batch does not block a writer forever that its index function waits for.
TEST(IndexerConcurrencyTest, AnIndexFunctionMayWaitForAnotherWriter) {
  Indexer* again = nullptr;
  std::size_t calls = 0;
  Indexer store({{"slow", [&](const api::Object& object, IndexValues&) {
                    if (object.ns() != "a" || ++calls > 8) return;
                    std::thread([&] { again->put(pod("b/x", calls)); }).join();
                  }}});
  again = &store;
  const std::vector<StoreChange> changes = {{StoreChange::Type::kPut, pod("a/x")},
                                            {StoreChange::Type::kPut, pod("a/y")}};
  store.apply(changes);
  EXPECT_GT(calls, 8u);
  EXPECT_EQ(store.size(), 3u);
}

/// A replacement that loses the race against a writer must read the current content again.
TEST(IndexerConcurrencyTest, ReplaceRemovesObjectsAddedDuringItsPreparation) {
  Indexer* again = nullptr;
  bool once = true;
  // Index functions run before the writer locks the store: another writer can change it in between.
  Indexer store({{"late", [&](const api::Object& object, IndexValues&) {
                    if (object.name() == "new" && std::exchange(once, false))
                      again->put(pod("a/intruder"));
                  }}});
  again = &store;
  store.replace({pod("a/new")}, "1");
  EXPECT_FALSE(once);
  EXPECT_FALSE(store.get("a", "intruder"));
  EXPECT_EQ(store.size(), 1u);
}

TEST(IndexerConcurrencyTest, IndexesCanBeAddedToABusyStore) {
  Indexer store;
  for (std::size_t i = 0; i < 2000; ++i)
    store.put(pod("b/" + std::to_string(i), 1, {{}, "n0", {}}));
  std::atomic<bool> done{false};
  std::thread writer([&] {
    for (std::size_t i = 1; !done; ++i) {
      if (i % 3 == 0) {
        store.remove_key(key(i * 7));
      } else {
        store.put(version(i));
      }
    }
  });
  for (int i = 0; i < 5; ++i) {
    const std::string name = "node" + std::to_string(i);
    store.add_indexers({{name, index_by_node}});
    const Snapshot snapshot = store.snapshot();
    std::size_t indexed = 0;
    for (const auto& node : snapshot.index_values(name)) {
      for (const auto& object : snapshot.by_index(name, node)) {
        ASSERT_TRUE(snapshot.get(object.ns(), object.name()).same(object));
        ++indexed;
      }
    }
    EXPECT_EQ(indexed, snapshot.size());
    EXPECT_THROW(store.add_indexers({{name, index_by_node}}), InvalidArgument);
  }
  done = true;
  writer.join();
}

}  // namespace
}  // namespace lookout::cache
