#include <gtest/gtest.h>

#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "tests/support/sanitizers.h"
#include "tools/cache/reclaimer.h"

namespace lookout::cache::detail {
namespace {

constexpr std::uint64_t kVersions = test::kSanitized ? 20'000 : 200'000;

/// The piece that readers read: both numbers are the version, until it is disposed of.
struct Root {
  std::uint64_t version;
  std::uint64_t check;
};

std::atomic<int> alive{0};

Root* make_root(std::uint64_t version) {
  ++alive;
  return new Root{version, ~version};
}
void dispose_root(void* memory) {
  auto* root = static_cast<Root*>(memory);
  EXPECT_EQ(root->check, ~root->version) << "disposed of twice";
  root->check = root->version;
  delete root;
  --alive;
}

TEST(ReclaimerConcurrencyTest, ReadersSeeWholeVersionsAndNothingIsLost) {
  std::atomic<bool> done{false};
  std::atomic<std::uint64_t> looks{0};
  {
    Reclaimer reclaimer;
    std::atomic<Root*> current{make_root(1)};
    const auto expect_whole = [](const Root* root) { ASSERT_EQ(root->check, ~root->version); };

    std::vector<std::thread> readers;
    for (int i = 0; i < 2; ++i) {
      readers.emplace_back([&] {  // reads with guards
        std::uint64_t last = 0;
        while (!done) {
          const Reclaimer::Guard guard(reclaimer);
          const Root* root = current.load(std::memory_order_seq_cst);
          expect_whole(root);
          EXPECT_GE(root->version, last) << "time went backwards";
          last = root->version;
          ++looks;
        }
      });
      readers.emplace_back([&, i] {  // pins versions and keeps a few pins
        std::minstd_rand random(static_cast<unsigned>(i));
        std::vector<std::pair<std::uint64_t, const Root*>> held;
        while (!done || !held.empty()) {
          if (!done && held.size() < 5) {
            const Root* root = nullptr;
            const auto version = reclaimer.pin([&] {
              root = current.load(std::memory_order_seq_cst);
              return root->version;
            });
            held.emplace_back(version, root);
          }
          const auto at = random() % held.size();
          expect_whole(held[at].second);
          EXPECT_EQ(held[at].first, held[at].second->version);
          if (done || random() % 2 == 0) {
            reclaimer.unpin(held[at].first);
            held.erase(held.begin() + static_cast<std::ptrdiff_t>(at));
          }
          ++looks;
        }
      });
    }
    for (std::uint64_t version = 2; version < kVersions; ++version) {
      Root* old = current.load();
      current.store(make_root(version), std::memory_order_seq_cst);
      std::vector<Retired> retired{{old, &dispose_root, old->version, version}};
      reclaimer.publish(version, retired);
      if (version % 1000 == 0) std::this_thread::yield();
    }
    done = true;
    for (auto& reader : readers) reader.join();
    reclaimer.reclaim();
    EXPECT_EQ(alive, 1);
    dispose_root(current.load());
  }
  EXPECT_EQ(alive, 0);
  EXPECT_GT(looks, 0u);
}

TEST(ReclaimerConcurrencyTest, MoreReadersThanSlots) {
  Reclaimer reclaimer;
  std::atomic<int> inside{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 40; ++i) {
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        const Reclaimer::Guard guard(reclaimer);
        ++inside;
        std::this_thread::yield();
      }
    });
  }
  for (auto& thread : threads) thread.join();
  EXPECT_EQ(inside, 40 * 50);
}

}  // namespace
}  // namespace lookout::cache::detail
