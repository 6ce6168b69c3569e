#include "tools/cache/reclaimer.h"

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace lookout::cache::detail {
namespace {

/// A sequence of versions; each change retires pieces.
class ReclaimerTest : public testing::Test {
 protected:
  using Piece = int;  // how often it was disposed of

  Piece* piece() { return pieces_.emplace_back(std::make_unique<Piece>(0)).get(); }

  /// Publishes the next version, without these pieces.
  struct Dead {
    Piece* piece;
    std::uint64_t birth;
  };
  void publish(std::initializer_list<Dead> dead = {}) {
    ++version_;
    std::vector<Retired> retired;
    for (const auto& [piece, birth] : dead) {
      retired.push_back(
          {piece, [](void* memory) { ++*static_cast<Piece*>(memory); }, birth, version_});
    }
    reclaimer_->publish(version_, retired);
    EXPECT_TRUE(retired.empty());
  }
  std::uint64_t pin() {
    return reclaimer_->pin([this] { return version_; });
  }
  void expect_kept_until_unpinned(std::uint64_t pinned, const Piece* a) {
    reclaimer_->reclaim();
    EXPECT_EQ(*a, 0);
    reclaimer_->unpin(pinned);
    EXPECT_EQ(*a, 1);
  }

  std::uint64_t version_ = 1;
  std::vector<std::unique_ptr<Piece>> pieces_;
  std::optional<Reclaimer> reclaimer_{std::in_place};
};

TEST_F(ReclaimerTest, UnreadPiecesAreDisposedOfOnce) {
  Piece* a = piece();
  publish({{a, 1}});
  reclaimer_->reclaim();
  EXPECT_EQ(*a, 1);
  reclaimer_->reclaim();
  publish();
  EXPECT_EQ(*a, 1);
}

TEST_F(ReclaimerTest, PublishingDisposesOfPiecesFromTimeToTime) {
  Piece* first = piece();
  publish({{first, 1}});
  for (int i = 0; i < 1000 && *first == 0; ++i) publish({{piece(), version_}});
  EXPECT_EQ(*first, 1);
}

TEST_F(ReclaimerTest, APinKeepsItsPiecesUntilItEnds) {
  Piece* a = piece();
  const auto pinned = pin();
  EXPECT_EQ(pinned, 1u);
  publish({{a, 1}});
  expect_kept_until_unpinned(pinned, a);
}

TEST_F(ReclaimerTest, APinDoesNotKeepPiecesOfLaterVersions) {
  const auto pinned = pin();
  Piece* later = piece();
  publish();              // version 2 contains it
  publish({{later, 2}});  // version 3 does not
  reclaimer_->reclaim();
  EXPECT_EQ(*later, 1);
  reclaimer_->unpin(pinned);
  EXPECT_EQ(*later, 1);
}

TEST_F(ReclaimerTest, APinDoesNotKeepPiecesRetiredBeforeIt) {
  Piece* earlier = piece();
  publish({{earlier, 1}});
  const auto pinned = pin();
  reclaimer_->reclaim();
  EXPECT_EQ(*earlier, 1);
  reclaimer_->unpin(pinned);
}

TEST_F(ReclaimerTest, TheLastPinOfAVersionReleasesItsPieces) {
  Piece* a = piece();
  const auto one = pin();
  const auto two = pin();
  publish({{a, 1}});
  reclaimer_->unpin(one);
  expect_kept_until_unpinned(two, a);
}

TEST_F(ReclaimerTest, AnOlderPinKeepsPiecesAfterANewerOneEnds) {
  Piece* old = piece();
  Piece* middle = piece();
  const auto at1 = pin();
  publish();  // contains `middle`
  const auto at2 = pin();
  publish({{old, 1}, {middle, 2}});
  EXPECT_EQ(*old + *middle, 0);
  reclaimer_->unpin(at2);
  EXPECT_EQ(*old, 0) << "version 1 still shows it";
  EXPECT_EQ(*middle, 1) << "version 1 never showed it";
  reclaimer_->unpin(at1);
  EXPECT_EQ(*old, 1);
}

TEST_F(ReclaimerTest, PinsEndInAnyOrder) {
  Piece* a = piece();
  const auto at1 = pin();
  publish();
  const auto at2 = pin();
  publish();
  const auto at3 = pin();
  publish({{a, 1}});
  reclaimer_->unpin(at1);
  reclaimer_->unpin(at3);
  expect_kept_until_unpinned(at2, a);
}

TEST_F(ReclaimerTest, AGuardKeepsPiecesOfItsVersion) {
  Piece* a = piece();
  Piece* b = piece();
  {
    const Reclaimer::Guard guard(*reclaimer_);
    publish({{a, 1}});
    reclaimer_->reclaim();
    EXPECT_EQ(*a, 0);
    const Reclaimer::Guard later(*reclaimer_);
    publish({{b, 1}});
    reclaimer_->reclaim();
    EXPECT_EQ(*a + *b, 0);
  }
  reclaimer_->reclaim();
  EXPECT_EQ(*a, 1);
  EXPECT_EQ(*b, 1);
}

/// More guards than slots: new ones begin before old ones end.
TEST_F(ReclaimerTest, ManyOverlappingGuardsDoNotBlockReclamation) {
  constexpr int kReaders = 64;
  std::deque<Reclaimer::Guard> guards;
  for (int i = 0; i < kReaders; ++i) guards.emplace_back(*reclaimer_);
  Piece* a = piece();
  publish({{a, 1}});
  guards.pop_front();
  reclaimer_->reclaim();
  EXPECT_EQ(*a, 0) << "others may have seen it";
  // Twice as many guards begin and end.
  for (int i = 0; i < 2 * kReaders; ++i) {
    guards.emplace_back(*reclaimer_);
    guards.pop_front();
  }
  reclaimer_->reclaim();
  EXPECT_EQ(*a, 1);
  Piece* b = piece();
  publish({{b, 1}});
  guards.clear();
  reclaimer_->reclaim();
  EXPECT_EQ(*b, 1);
}

TEST_F(ReclaimerTest, AGuardDoesNotKeepPiecesRetiredBeforeIt) {
  Piece* a = piece();
  publish({{a, 1}});
  const Reclaimer::Guard guard(*reclaimer_);
  reclaimer_->reclaim();
  EXPECT_EQ(*a, 1);
}

TEST_F(ReclaimerTest, AGuardProtectsPiecesOfAnEndedPin) {
  Piece* a = piece();
  const auto pinned = pin();
  {
    const Reclaimer::Guard guard(*reclaimer_);
    publish({{a, 1}});
    reclaimer_->unpin(pinned);
    EXPECT_EQ(*a, 0);
  }
  reclaimer_->reclaim();
  EXPECT_EQ(*a, 1);
}

TEST_F(ReclaimerTest, ChangesUnpinnedPiecesInPlace) {
  const auto change_what_is_there_since = [this](std::uint64_t birth, Piece* old) {
    const Retired retired{old, [](void* memory) { ++*static_cast<Piece*>(memory); }, birth,
                          version_ + 1};
    bool changed = false;
    const bool said =
        reclaimer_->publish_in_place(birth, version_ + 1, {&retired, 1}, [&] { changed = true; });
    EXPECT_EQ(said, changed);
    if (said) ++version_;
    return said;
  };
  Piece* a = piece();
  Piece* b = piece();
  publish();
  const auto at2 = pin();
  EXPECT_FALSE(change_what_is_there_since(1, a));
  EXPECT_FALSE(change_what_is_there_since(2, a));
  publish();
  EXPECT_FALSE(change_what_is_there_since(2, a));
  EXPECT_TRUE(change_what_is_there_since(3, a)) << "the pin has another one";
  reclaimer_->reclaim();
  EXPECT_EQ(*a, 1);
  {
    const Reclaimer::Guard guard(*reclaimer_);
    EXPECT_TRUE(change_what_is_there_since(3, b));
    reclaimer_->reclaim();
    EXPECT_EQ(*b, 0) << "the guard may have seen it";
  }
  reclaimer_->reclaim();
  EXPECT_EQ(*b, 1);
  reclaimer_->unpin(at2);
  EXPECT_TRUE(change_what_is_there_since(2, piece()));
}

/// More pieces than one portion.
TEST_F(ReclaimerTest, APinDisposesOfAllItsPiecesWithoutAWriter) {
  const auto at1 = pin();
  publish();
  const auto at2 = pin();
  for (int i = 0; i < 1000; ++i) publish({{piece(), 1}, {piece(), 2}});
  const auto disposed = [this](std::size_t first) {
    std::size_t n = 0;
    for (std::size_t i = first; i < pieces_.size(); i += 2) n += *pieces_[i] == 1 ? 1u : 0u;
    return n;
  };
  EXPECT_EQ(disposed(0) + disposed(1), 0u);
  reclaimer_->unpin(at2);
  EXPECT_EQ(disposed(0), 0u) << "version 1 still shows them";
  EXPECT_EQ(disposed(1), 1000u);
  reclaimer_->unpin(at1);
  EXPECT_EQ(disposed(0), 1000u);
}

/// While there is a writer, the end of a pin leaves its pieces to the writer, which frees them in
/// portions.
TEST_F(ReclaimerTest, AWriterDisposesOfPiecesInPortions) {
  constexpr std::size_t kMany = 10'000;
  constexpr std::size_t kPart = 200;
  static std::size_t disposed;
  static std::function<void()> write;  // called once
  disposed = 0;
  write = {};
  const auto dispose = [](void*) {
    ++disposed;
    if (const auto once = std::exchange(write, {})) once();
  };
  const auto pinned = pin();
  std::vector<Retired> retired;
  for (std::size_t i = 0; i < kMany; ++i) retired.push_back({nullptr, dispose, 1, version_ + 1});
  reclaimer_->publish(++version_, retired);
  EXPECT_EQ(disposed, 0u);
  write = [this] { reclaimer_->begin_write(); };
  reclaimer_->unpin(pinned);
  EXPECT_EQ(disposed, 1u) << "the writer had begun";
  for (std::size_t i = 0; i < kMany && disposed < kMany - 2 * kPart; ++i) {
    const std::size_t before = disposed;
    publish();
    EXPECT_GT(disposed, before);
    EXPECT_LE(disposed - before, kPart);
  }
  // (The writer keeps a few until there are more.)
  reclaimer_->reclaim();
  EXPECT_EQ(disposed, kMany);
}

TEST_F(ReclaimerTest, TheDestructorDisposesOfTheRest) {
  Piece* a = piece();
  Piece* b = piece();
  const auto pinned = pin();
  publish({{a, 1}});
  reclaimer_->unpin(pinned);
  publish({{b, 2}});
  reclaimer_.reset();
  EXPECT_EQ(*a, 1);
  EXPECT_EQ(*b, 1);
}

}  // namespace
}  // namespace lookout::cache::detail
