#include "lookout/base/metrics.h"

#include <gtest/gtest.h>

#include "lookout/base/prometheus_text.h"
#include "tests/support/matchers.h"

namespace lookout::metrics {
namespace {

using testing::Pair;

TEST(HistogramTest, CountsValuesUpToEachBound) {
  static constexpr double kBounds[] = {1, 2.5, 10};
  Histogram histogram(kBounds);
  for (const double value : {0.5, 1.0, 2.0, 11.0}) histogram.observe(value);
  EXPECT_THAT(histogram.cumulative(), ElementsAre(Pair(1, 2), Pair(2.5, 3), Pair(10, 3)));
  EXPECT_EQ(histogram.count(), 4u);
  EXPECT_DOUBLE_EQ(histogram.sum(), 14.5);
}

TEST(HistogramTest, HasTheBucketsOfClientGo) {
  // component-base: ExponentialBuckets(10e-9, 10, 10), and the buckets of its informer metrics.
  EXPECT_THAT(kWorkQueueBuckets, ElementsAre(1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1, 10));
  EXPECT_THAT(kInformerBuckets,
              ElementsAre(0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10));
  EXPECT_EQ(Histogram().cumulative().size(), 10u);
}

TEST(VersionValueTest, KeepsTheDigitsThatADoubleHolds) {
  EXPECT_EQ(version_value("0"), 0);
  EXPECT_EQ(version_value("41101"), 41101);
  EXPECT_EQ(version_value("999999999999999"), 999999999999999);
  EXPECT_EQ(version_value("1234567890123456789"), 567890123456789);
  for (const char* no_number : {"", "abc", "-5", "1.5", "12x"})
    EXPECT_EQ(version_value(no_number), 0) << no_number;
}

TEST(PrometheusText, HasOneSampleForEachSetOfLabels) {
  std::vector<Sample> samples;
  for (int component = 1; component <= 2; ++component) {
    Collector all(samples, {});
    all.counter("panics_total", "Panics.", component);
    all.gauge("depth", "Depth.", component);
    Collector own(samples, {{"path", component == 1 ? "/a" : "/b"}});
    own.counter("requests_total", "Requests.", component);
  }
  EXPECT_EQ(prometheus_text(samples),
            "# HELP depth Depth.\n# TYPE depth gauge\ndepth 2\n"
            "# HELP panics_total Panics.\n# TYPE panics_total counter\npanics_total 3\n"
            "# HELP requests_total Requests.\n# TYPE requests_total counter\n"
            "requests_total{path=\"/a\"} 1\nrequests_total{path=\"/b\"} 2\n");
}

}  // namespace
}  // namespace lookout::metrics
