// The statistics of `lookout bench` over many durations.
#include "cmd/bench/lag_histogram.h"

#include "tests/support/matchers.h"

namespace lookout::cmd::bench {
namespace {

using testing::Ge;
using testing::Le;

TEST(LagHistogramTest, IsWithinThreePerCent) {
  LagHistogram lags;
  for (int i = 1; i <= 100'000; ++i) lags.add(i * 10);
  EXPECT_EQ(lags.count(), 100'000u);
  EXPECT_THAT(lags.quantile_ms(0.5), AllOf(Ge(500.0), Le(517.0)));
  EXPECT_THAT(lags.quantile_ms(0.99), AllOf(Ge(990.0), Le(1000.0)));
  EXPECT_EQ(lags.max_ms(), 1000.0);
}

TEST(LagHistogramTest, AcceptsAnyDuration) {
  LagHistogram lags;
  EXPECT_EQ(lags.quantile_ms(0.99), 0.0);
  lags.add(-5);  // a clock that was set back
  EXPECT_EQ(lags.quantile_ms(0.5), 0.0);
  lags.add(std::int64_t{1} << 62);
  EXPECT_EQ(lags.max_ms(), static_cast<double>(std::int64_t{1} << 62) / 1000);
  EXPECT_EQ(lags.quantile_ms(1), lags.max_ms());
  EXPECT_EQ(lags.count(), 2u);
}

}  // namespace
}  // namespace lookout::cmd::bench
