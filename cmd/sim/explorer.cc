#include "cmd/sim/explorer.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "cmd/duration.h"
#include "lookout/base/error.h"

namespace lookout::cmd::sim {
namespace {

using std::chrono::steady_clock;

/// Seeds per process.
constexpr std::uint64_t kSeedsAtOnce = 50;
constexpr std::chrono::milliseconds kLook{10};

}  // namespace

Explorer::Explorer(ExplorerOptions options, std::string folder)
    : options_(std::move(options)), folder_(std::move(folder)), begin_(steady_clock::now()) {
  for (const std::string& name : list_tests(options_.program, options_.filter, folder_)) {
    tests_.push_back({.name = name});
    work_.push_back({.seeds = options_.seeds});
  }
  if (tests_.empty())
    throw Error(
        fmt::format("{} has no test that passes the filter {}", options_.program, options_.filter));
}

void Explorer::run(const std::stop_token& stop) {
  begin_ = steady_clock::now();
  while (!over_ && !stop.stop_requested()) {
    while (running_.size() < options_.jobs && !time_is_over() && start_one()) {
    }
    if (running_.empty()) return;
    wait_for_stop(stop, kLook);
    for (std::size_t i = 0; i < running_.size() && !over_;) {
      const std::optional<TestResult> result = running_[i].run->poll();
      if (!result) {
        ++i;
        continue;
      }
      const std::size_t test = running_[i].test;
      const Seeds seeds = running_[i].run->seeds();
      running_.erase(running_.begin() + static_cast<std::ptrdiff_t>(i));
      finish(test, seeds, *result);
    }
    if (on_progress) on_progress();
  }
  running_.clear();
}

bool Explorer::start_one() {
  const auto begin = [&](std::size_t test, const Seeds& seeds) {
    running_.push_back(
        {test, std::make_unique<TestRun>(options_.program, tests_[test].name, seeds, folder_)});
    return true;
  };
  if (!again_.empty()) {
    const auto [test, seeds] = again_.front();
    again_.pop_front();
    return begin(test, seeds);
  }
  for (std::size_t i = 0; i < work_.size(); ++i) {
    const std::size_t test = (next_ + i) % work_.size();
    Work& work = work_[test];
    if (tests_[test].other || work.seeds.empty()) continue;
    const bool waits = std::any_of(running_.begin(), running_.end(), [&](const Running& one) {
      return one.test == test && !work.probed;
    });
    if (waits) continue;
    next_ = test + 1;
    return begin(test, work.seeds.take(work.probed ? kSeedsAtOnce : 1));
  }
  return false;
}

void Explorer::finish(std::size_t test, const Seeds& seeds, const TestResult& result) {
  TestFigures& figures = tests_[test];
  work_[test].probed = true;
  if (!result.has_worlds) {
    figures.other = true;
    return;
  }
  figures.worlds += result.worlds;
  figures.requests += result.requests;
  if (result.passed) return;
  ++figures.failures;
  if (result.seed) figures.failed_seeds.push_back(*result.seed);
  if (on_failure) on_failure(figures.name, result);
  if (!options_.keep_going) {
    over_ = true;
  } else if (result.without_faults) {
    work_[test].seeds.last = 0;
  } else if (result.seed && *result.seed >= seeds.first && *result.seed < seeds.last) {
    again_.emplace_back(test, Seeds{*result.seed + 1, seeds.last});
  }
}

bool Explorer::time_is_over() const {
  return options_.time.count() > 0 && elapsed() >= options_.time;
}

std::chrono::milliseconds Explorer::elapsed() const {
  return std::chrono::duration_cast<std::chrono::milliseconds>(steady_clock::now() - begin_);
}

std::uint64_t Explorer::worlds() const {
  std::uint64_t out = 0;
  for (const auto& test : tests_) out += test.worlds;
  return out;
}

std::uint64_t Explorer::failures() const {
  std::uint64_t out = 0;
  for (const auto& test : tests_) out += test.failures;
  return out;
}

std::uint64_t Explorer::world_tests() const {
  return static_cast<std::uint64_t>(
      std::count_if(tests_.begin(), tests_.end(), [](const auto& test) { return !test.other; }));
}

}  // namespace lookout::cmd::sim
