// Scraping: the selection of pods, the requests, and the evaluation of the metrics.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <atomic>
#include <functional>

#include "cmd/registry/page/metrics_text.h"
#include "cmd/registry/page/scrape_target.h"
#include "cmd/registry/page/scraper.h"
#include "lookout/api/object.h"
#include "lookout/base/http/server.h"
#include "tests/support/eventually.h"
#include "tests/support/matchers.h"

namespace lookout::cmd::registry_cmd {
namespace {

using namespace std::chrono_literals;
using lookout::test::eventually;

// ------------------------------------------------------------------------------------- targets

/// A running pod with these annotations and this address.
api::Object pod_with(const std::string& annotations, const std::string& address = "10.1.2.3",
                     const std::string& spec = "{}", const std::string& phase = "Running") {
  return api::Object::parse(fmt::format(
      R"({{"metadata": {{"namespace": "shop", "name": "web-1", "annotations": {{{}}}}},
           "spec": {}, "status": {{"phase": "{}", "podIP": "{}"}}}})",
      annotations, spec, phase, address));
}

const std::string kAsks = R"("prometheus.io/scrape": "true", "prometheus.io/port": "9090")";

std::string url_of(const api::Object& pod) {
  const auto target = scrape_target(pod);
  return target ? target->url : "none";
}

TEST(ScrapeTarget, IsAtTheAddressOfThePod) {
  EXPECT_EQ(url_of(pod_with(kAsks)), "http://10.1.2.3:9090/metrics");
  EXPECT_EQ(url_of(pod_with(kAsks, "fd00:1::2")), "http://[fd00:1::2]:9090/metrics");
  EXPECT_EQ(url_of(pod_with(kAsks + R"(, "prometheus.io/path": "/stats?x=1")")),
            "http://10.1.2.3:9090/stats?x=1");
  EXPECT_EQ(scrape_target(pod_with(kAsks))->pod, "shop/web-1");
}

TEST(ScrapeTarget, ExistsOnlyIfThePodRequestsIt) {
  EXPECT_EQ(url_of(pod_with("")), "none");
  EXPECT_EQ(url_of(pod_with(R"("prometheus.io/port": "9090")")), "none");
  EXPECT_EQ(url_of(pod_with(R"("prometheus.io/scrape": "true")")), "none");
  EXPECT_EQ(url_of(pod_with(kAsks, "10.1.2.3", "{}", "Pending")), "none");
  EXPECT_EQ(url_of(pod_with(kAsks, "")), "none");
}

TEST(ScrapeTarget, RejectsAddressesThatPodsCannotHave) {
  for (const char* address : {"127.0.0.1", "0.0.0.0", "0.1.2.3", "169.254.169.254", "224.0.0.1",
                              "255.255.255.255", "::", "::1", "::ffff:127.0.0.1", "::ffff:10.1.2.3",
                              "::127.0.0.1", "fe80::1", "fe80::1%eth0", "ff02::1", "example.com",
                              "10.1.2", "10.1.2.3:80", "10.1.2.3@evil", " 10.1.2.3"}) {
    EXPECT_EQ(url_of(pod_with(kAsks, address)), "none") << address;
  }
  EXPECT_EQ(url_of(pod_with(kAsks, "10.1.2.3", R"({"hostNetwork": true})")), "none");
}

TEST(ScrapeTarget, HasAPlainPortAndPath) {
  for (const char* port : {"0", "65536", "-1", "90x", "", "9090@evil", " 80"}) {
    EXPECT_EQ(url_of(pod_with(fmt::format(
                  R"("prometheus.io/scrape": "true", "prometheus.io/port": "{}")", port))),
              "none")
        << port;
  }
  for (const char* path : {"metrics", "@evil/", "/a b", "/a\\r\\nHost: evil", "/#x", "//\\u0000",
                           "/\\u00e4", "/\\\\evil"}) {
    EXPECT_EQ(url_of(pod_with(kAsks + fmt::format(R"(, "prometheus.io/path": "{}")", path))),
              "none")
        << path;
  }
  EXPECT_EQ(url_of(pod_with(kAsks + R"(, "prometheus.io/path": "/)" + std::string(300, 'x') + '"')),
            "none");
}

// ----------------------------------------------------------------------------------- the format

std::vector<std::string> read(const std::string& text) {
  std::vector<std::string> out;
  read_metrics(text, "lookout_", [&](const MetricLine& line) {
    out.push_back(fmt::format("{}|{}|{}|{}", line.name, line.service, line.instance, line.value));
  });
  return out;
}

TEST(MetricsText, IsReadLineByLine) {
  EXPECT_THAT(
      read("# HELP lookout_a About.\n# TYPE lookout_a counter\n"
           "lookout_a{service=\"web\",instance=\"shop/web-1\"} 12\n"
           "other{service=\"web\"} 1\n"
           "lookout_b { service = \"web\" , x=\"y\", } 1.5e3 1700000000\r\n"
           "lookout_c{service=\"a\\\"b\\\\c\\nd\"} 0"),
      ElementsAre("lookout_a|web|shop/web-1|12", "lookout_b|web||1500", "lookout_c|a\"b\\c\nd||0"));
}

TEST(MetricsText, MalformedLinesAreSkipped) {
  for (const char* line :
       {"lookout_a", "lookout_a{", "lookout_a{service", "lookout_a{service=",
        "lookout_a{service=\"", "lookout_a{service=\"web", "lookout_a{service=\"web\\",
        "lookout_a{service=\"web\"", "lookout_a{service=\"web\"}", "lookout_a{service=\"web\"} x",
        "lookout_a{service=\"web\"} 1x", "lookout_a{service=\"web\"} NaN",
        "lookout_a{service=\"web\"} +Inf", "lookout_a{=\"web\"} 1", "lookout_a{service=web} 1",
        "lookout_a 1", "lookout_a{} 1", "\n", "lookout_a{service=\"\"} 1"}) {
    EXPECT_THAT(read(fmt::format("{}\nlookout_b{{service=\"web\"}} 1\n", line)),
                ElementsAre("lookout_b|web||1"))
        << line;
  }
  EXPECT_THAT(read("lookout_a{service=\"" + std::string(kLongestLabel + 1, 'x') + "\"} 1"),
              IsEmpty());
}

// -------------------------------------------------------------------------------------- rates

std::string counted(double picks, double errors, int ejected) {
  return fmt::format(
      "lookout_registry_picks_total{{service=\"web\",instance=\"a\"}} {}\n"
      "lookout_registry_errors_total{{service=\"web\",instance=\"a\"}} {}\n"
      "lookout_registry_instance_ejected{{service=\"web\",instance=\"a\"}} {}\n"
      "lookout_registry_picks_total{{service=\"web\"}} 77\n"
      "lookout_registry_instances{{service=\"web\"}} 4\n",
      picks, errors, ejected);
}

constexpr std::chrono::steady_clock::time_point kStart{1000s};

TEST(PageTraffic, IsTheIncreaseOfCounters) {
  const Sample before = read_sample(counted(100, 10, 0), kStart);
  const Sample after = read_sample(counted(160, 13, 1), kStart + 10s);
  Traffic traffic;
  add_rates(traffic, before, after);
  add_rates(traffic, read_sample(counted(0, 0, 0), kStart),
            read_sample(counted(20, 0, 0), kStart + 5s));
  sum_up(traffic);
  ASSERT_THAT(traffic.services, SizeIs(1));
  const Rates& a = traffic.services["web"].instances["a"];
  EXPECT_DOUBLE_EQ(a.picks, 10);
  EXPECT_DOUBLE_EQ(a.errors, 0.3);
  EXPECT_EQ(a.ejected, 1u);
  EXPECT_EQ(a.callers, 2u);
  EXPECT_DOUBLE_EQ(traffic.services["web"].all.picks, 10);
  EXPECT_EQ(traffic.services["web"].all.ejected, 1u);
}

TEST(PageTraffic, AResetCounterCountsFromZero) {
  Traffic traffic;
  add_rates(traffic, read_sample(counted(1000, 1000, 0), kStart),
            read_sample(counted(10, 0, 0), kStart + 10s));
  EXPECT_DOUBLE_EQ(traffic.services["web"].instances["a"].picks, 1);
  EXPECT_DOUBLE_EQ(traffic.services["web"].instances["a"].errors, 0);
}

TEST(PageTraffic, TheNumberOfInstancesPerProgramIsBounded) {
  std::string text;
  for (std::size_t i = 0; i < kMostInstancesOfAProgram + 100; ++i) {
    text += fmt::format("lookout_registry_picks_total{{service=\"web\",instance=\"{}\"}} 1\n", i);
  }
  EXPECT_THAT(read_sample(text, kStart).instances, SizeIs(kMostInstancesOfAProgram));
}

// ------------------------------------------------------------------------------------- asking

/// A program that exports metrics.
class Program {
 public:
  using Answer = std::function<http::Response(const http::Request& request)>;
  explicit Program(Answer answer)
      : answer_(std::move(answer)),
        server_(
            http::ServerOptions{.address = "127.0.0.1", .threads = 1},
            [this](http::Request request) -> Awaitable<http::Response> {
              ++requests;
              co_return answer_(request);
            },
            [](int status, const std::string& why) { return http::Response::text(status, why); }) {
    server_.start();
  }
  ~Program() { server_.stop(0ms); }
  std::string url() const { return fmt::format("http://127.0.0.1:{}/metrics", server_.port()); }

  std::atomic<int> requests{0};

 private:
  const Answer answer_;
  http::Server server_;
};

std::optional<std::string> fetch(const Program& program, ScrapeOptions options = {}) {
  options.timeout = 10s;
  return fetch_metrics(program.url(), options, {});
}

TEST(FetchMetrics, ReturnsTheBody) {
  std::string sent;
  Program program([&](const http::Request& request) {
    sent = std::string(request.header("authorization")) + std::string(request.header("cookie"));
    return http::Response::text(200, "x 1\n");
  });
  EXPECT_EQ(fetch(program), "x 1\n");
  EXPECT_EQ(sent, "");
}

TEST(FetchMetrics, FollowsNoRedirectAndRejectsErrors) {
  Program target([](const http::Request&) { return http::Response::text(200, "secret"); });
  Program redirecting([&](const http::Request&) {
    auto response = http::Response::text(302, "elsewhere");
    response.headers.emplace_back("Location", target.url());
    return response;
  });
  EXPECT_EQ(fetch(redirecting), std::nullopt);
  EXPECT_EQ(target.requests.load(), 0);
  Program failing([](const http::Request&) { return http::Response::text(500, "x 1"); });
  EXPECT_EQ(fetch(failing), std::nullopt);
}

TEST(FetchMetrics, LimitsTheSize) {
  Program program(
      [](const http::Request&) { return http::Response::text(200, std::string(5000, 'x')); });
  EXPECT_EQ(fetch(program, {.most_bytes = 4999}), std::nullopt);
  EXPECT_EQ(fetch(program, {.most_bytes = 5000})->size(), 5000u);
}

TEST(FetchMetrics, EndsWithAStop) {
  Program program([](const http::Request&) { return http::Response::text(200, "x 1"); });
  std::stop_source stop;
  stop.request_stop();
  EXPECT_EQ(fetch_metrics(program.url(), {}, stop.get_token()), std::nullopt);
  EXPECT_EQ(fetch_metrics("file:///etc/hostname", {}, {}), std::nullopt);
}

TEST(Scraper, ShowsRatesAndUnreachablePrograms) {
  std::atomic<int> calls{0};
  Program program([&](const http::Request&) {
    const int n = ++calls;
    return http::Response::text(200, counted(100 * n, n, 1));
  });
  Program broken([](const http::Request&) { return http::Response::text(500, "no"); });
  const std::vector<ScrapeTarget> targets{{"shop/broken", broken.url()},
                                          {"shop/caller", program.url()}};
  const Scraper scraper([&] { return targets; }, {.interval = 1ms, .timeout = 10s});
  TrafficPtr traffic;
  ASSERT_TRUE(eventually([&] { return (traffic = scraper.traffic()) != nullptr; }));
  EXPECT_EQ(traffic->asked, 2u);
  EXPECT_EQ(traffic->answered, 1u);
  const ServiceTraffic& web = traffic->services.at("web");
  EXPECT_GT(web.all.picks, 0);
  EXPECT_GT(web.instances.at("a").picks, web.instances.at("a").errors);
  EXPECT_EQ(web.instances.at("a").ejected, 1u);
  const auto problems = scraper.problems();
  ASSERT_THAT(problems, SizeIs(1));
  EXPECT_EQ(problems[0].where, "shop/broken");
}

TEST(Scraper, ScrapesABoundedNumberOfPrograms) {
  Program program([](const http::Request&) { return http::Response::text(200, ""); });
  const std::vector<ScrapeTarget> targets{
      {"c", program.url()}, {"a", program.url()}, {"b", program.url()}};
  std::atomic<int> rounds{0};
  const Scraper scraper(
      [&] {
        ++rounds;
        return targets;
      },
      {.interval = 1h, .timeout = 10s, .most_targets = 2});
  ASSERT_TRUE(eventually([&] { return !scraper.problems().empty(); }));
  EXPECT_EQ(scraper.problems()[0].reason, "only the first 2 of 3 programs are scraped");
  EXPECT_EQ(program.requests.load(), 2);
  EXPECT_EQ(rounds.load(), 1);
}

}  // namespace
}  // namespace lookout::cmd::registry_cmd
