#include "lookout/base/labelled_metrics.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "lookout/base/error.h"
#include "lookout/base/prometheus_text.h"
#include "tests/support/matchers.h"

namespace lookout::metrics {
namespace {

std::string page_of(const Source& source) {
  std::vector<Sample> samples;
  source.collect(samples);
  return prometheus_text(samples);
}

TEST(CounterVecTest, HasOneCounterForEachListOfValues) {
  CounterVec requests("requests_total", "Requests.", {"method", "result"});
  requests.with({"get", "ok"})->add();
  requests.with({"get", "ok"})->add(2.5);
  const std::string method = "create";
  requests.with({method, std::string_view("a \"b\"")})->add();
  EXPECT_EQ(page_of(requests),
            "# HELP requests_total Requests.\n# TYPE requests_total counter\n"
            "requests_total{method=\"create\",result=\"a \\\"b\\\"\"} 1\n"
            "requests_total{method=\"get\",result=\"ok\"} 3.5\n");
}

TEST(CounterVecTest, NeedsNoLabels) {
  CounterVec starts("starts_total", "Starts.");
  EXPECT_EQ(page_of(starts), "") << "nothing was counted";
  starts.with()->add(0);
  EXPECT_EQ(page_of(starts),
            "# HELP starts_total Starts.\n# TYPE starts_total counter\nstarts_total 0\n");
}

TEST(CounterVecTest, RejectsInvalidCounts) {
  CounterVec starts("starts_total", "Starts.");
  const auto counter = starts.with();
  EXPECT_THROW(counter->add(-1), InvalidArgument);
  EXPECT_EQ(counter->value(), 0);
}

TEST(CounterVecTest, RejectsAnotherNumberOfValues) {
  CounterVec requests("requests_total", "Requests.", {"method"});
  EXPECT_THROW(requests.with(), InvalidArgument);
  EXPECT_THROW(requests.with({"get", "ok"}), InvalidArgument);
  EXPECT_THROW(requests.remove({}), InvalidArgument);
}

TEST(CounterVecTest, RejectsNamesThatPrometheusRejects) {
  for (const char* name : {"", "9lives", "with space", "a-b", "\xc3\xa4"})
    EXPECT_THROW(CounterVec(name, ""), InvalidArgument) << name;
  for (const char* label : {"", "9lives", "a:b", "__name", "a-b"})
    EXPECT_THROW(CounterVec("x", "", {label}), InvalidArgument) << label;
  EXPECT_THROW(CounterVec("x", "", {"a", "b", "a"}), InvalidArgument);
  EXPECT_NO_THROW(CounterVec("a:b_9", "", {"_a9", "le"}));
}

TEST(CounterVecTest, ReplacesInvalidUtf8InValues) {
  CounterVec requests("requests_total", "Requests.", {"method"});
  requests.with({"\xff"})->add();
  EXPECT_NE(page_of(requests).find("{method=\"\xEF\xBF\xBD\"} 1\n"), std::string::npos);
}

TEST(CounterVecTest, RemovedSeriesAreNotCollected) {
  CounterVec requests("requests_total", "Requests.", {"method"});
  const auto kept = requests.with({"get"});
  requests.with({"list"})->add();
  EXPECT_TRUE(requests.remove({"get"}));
  EXPECT_FALSE(requests.remove({"get"}));
  kept->add();
  EXPECT_EQ(page_of(requests).find("get"), std::string::npos);
  EXPECT_EQ(requests.with({"get"})->value(), 0) << "a new one";
  requests.clear();
  EXPECT_EQ(page_of(requests), "");
}

TEST(CounterVecTest, CountsFromSeveralThreads) {
  CounterVec requests("requests_total", "Requests.", {"method"});
  {
    std::vector<std::jthread> threads;
    for (int i = 0; i < 4; ++i) {
      threads.emplace_back([&] {
        for (int round = 0; round < 500; ++round) {
          requests.with({round % 2 == 0 ? "get" : "list"})->add();
          if (round % 100 == 0) page_of(requests);
        }
      });
    }
  }
  EXPECT_EQ(requests.with({"get"})->value(), 1000);
  EXPECT_EQ(requests.with({"list"})->value(), 1000);
}

TEST(GaugeVecTest, IncreasesAndDecreases) {
  GaugeVec depth("depth", "Depth.", {"queue"});
  const auto gauge = depth.with({"a"});
  gauge->set(5);
  gauge->add();
  gauge->subtract(2);
  EXPECT_EQ(page_of(depth), "# HELP depth Depth.\n# TYPE depth gauge\ndepth{queue=\"a\"} 4\n");
}

TEST(HistogramVecTest, CountsInItsOwnBuckets) {
  HistogramVec seconds("seconds", "Seconds.", {"step"}, {1, 2});
  const auto steps = seconds.with({"build"});
  for (const double value : {0.5, 1.0, 1.5, 3.0}) steps->observe(value);
  EXPECT_EQ(page_of(seconds),
            "# HELP seconds Seconds.\n# TYPE seconds histogram\n"
            "seconds_bucket{step=\"build\",le=\"1\"} 2\nseconds_bucket{step=\"build\",le=\"2\"} 3\n"
            "seconds_bucket{step=\"build\",le=\"+Inf\"} 4\n"
            "seconds_sum{step=\"build\"} 6\nseconds_count{step=\"build\"} 4\n");
  steps->observe(std::nan(""));
  EXPECT_EQ(steps->count(), 5u);
  EXPECT_EQ(steps->cumulative().back().second, 3u);
}

TEST(HistogramVecTest, HasAsManyBucketsAsItIsGiven) {
  HistogramVec seconds("seconds", "Seconds.", {}, exponential_buckets(1, 2, 20));
  seconds.with()->observe(1 << 18);
  EXPECT_EQ(seconds.with()->cumulative()[17].second, 0u);
  EXPECT_EQ(seconds.with()->cumulative()[18].second, 1u);
  EXPECT_EQ(HistogramVec("x", "").with()->cumulative().size(), 11u);
  // The bucket of all others may be named, as in Go.
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_EQ(HistogramVec("x", "", {}, {1, infinity}).with()->cumulative().size(), 1u);
}

TEST(HistogramVecTest, RejectsBucketsOutOfOrder) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (const std::vector<double>& buckets :
       {std::vector<double>{2, 1}, {1, 1}, {infinity, 1}, {std::nan("")}, {1, std::nan("")}}) {
    EXPECT_THROW(HistogramVec("x", "", {}, buckets), InvalidArgument);
  }
  EXPECT_THROW(HistogramVec("x", "", {"le"}), InvalidArgument);
}

TEST(BucketsTest, AreThoseOfClientGolang) {
  EXPECT_THAT(default_buckets(),
              ElementsAre(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10));
  EXPECT_THAT(exponential_buckets(100, 1.5, 3), ElementsAre(100, 150, 225));
  EXPECT_THAT(linear_buckets(-1, 2, 3), ElementsAre(-1, 1, 3));
  EXPECT_THROW(exponential_buckets(0, 2, 3), InvalidArgument);
  EXPECT_THROW(exponential_buckets(1, 1, 3), InvalidArgument);
  EXPECT_THROW(exponential_buckets(1, 2, 0), InvalidArgument);
  EXPECT_THROW(linear_buckets(0, 0, 3), InvalidArgument);
}

}  // namespace
}  // namespace lookout::metrics
