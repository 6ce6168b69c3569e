#include "lookout/tools/workqueue/parallelize.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <stdexcept>
#include <thread>

namespace lookout::workqueue {
namespace {

struct Case {
  std::size_t pieces;
  std::size_t workers;
  std::size_t chunk;
};
class ParallelizeTest : public testing::TestWithParam<Case> {};

TEST_P(ParallelizeTest, ProcessesEveryPieceOnce) {
  const auto [pieces, workers, chunk] = GetParam();
  const auto seen = std::make_unique<std::atomic<int>[]>(pieces + 1);
  parallelize_until(
      {}, workers, pieces, [&](std::size_t piece) { ++seen[piece]; }, chunk);
  for (std::size_t i = 0; i < pieces; ++i) EXPECT_EQ(seen[i], 1) << i;
}

INSTANTIATE_TEST_SUITE_P(, ParallelizeTest,
                         testing::Values(Case{1000, 10, 1}, Case{1000, 10, 10}, Case{1000, 10, 100},
                                         Case{999, 13, 13}, Case{5, 50, 2}, Case{0, 4, 1},
                                         Case{10, 1, 3}, Case{10, 2, 0}));

TEST(ParallelizeUntilTest, AStopStartsNoFurtherPieces) {
  std::stop_source stop;
  int done = 0;
  parallelize_until(stop.get_token(), 1, 1000, [&](std::size_t) {
    if (++done == 10) stop.request_stop();
  });
  EXPECT_EQ(done, 10);
  std::atomic<int> nothing{0};
  parallelize_until(stop.get_token(), 4, 1000, [&](std::size_t) { ++nothing; });
  EXPECT_EQ(nothing, 0);
}

TEST(ParallelizeUntilTest, AnExceptionEndsTheWorkAndIsRethrown) {
  for (const std::size_t workers : {1u, 4u}) {
    std::atomic<int> done{0};
    const auto work = [&](std::size_t) {
      if (++done >= 10) throw std::runtime_error("no");
    };
    EXPECT_THROW(parallelize_until({}, workers, 1000, work), std::runtime_error);
    EXPECT_LE(done, static_cast<int>(9 + workers)) << "each worker throws once";
  }
}

TEST(ParallelizeUntilTest, AnExceptionOfOneWorkerEndsTheOthers) {
  constexpr int kPieces = 3000;
  std::atomic<int> done{0};
  const auto work = [&](std::size_t) {
    if (++done == 1) throw std::runtime_error("no");
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  EXPECT_THROW(parallelize_until({}, 2, kPieces, work), std::runtime_error);
  EXPECT_LT(done, kPieces);
}

}  // namespace
}  // namespace lookout::workqueue
