// Asks programs for their metrics.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "cmd/registry/page/notes.h"
#include "cmd/registry/page/scrape_target.h"
#include "cmd/registry/page/traffic.h"

namespace lookout::cmd::registry_cmd {

struct ScrapeOptions {
  /// From the beginning of one round to that of the next.
  std::chrono::milliseconds interval{10'000};
  /// For one program, with everything.
  std::chrono::milliseconds timeout{1'000};
  std::size_t at_a_time = 4;
  std::size_t most_bytes = 8u << 20;
  /// Programs; of more, the first by name.
  std::size_t most_targets = 1'000;
};

/// The body of a page; nothing if there is no answer 200 with a body within the limits. Speaks HTTP
/// only, follows no redirect, uses no proxy and sends nothing but a GET without credentials.
std::optional<std::string> fetch_metrics(const std::string& url, const ScrapeOptions& options,
                                         const std::stop_token& stop);

/// Asks all targets, a few at a time, again and again.
class Scraper {
 public:
  /// `targets` is called on the scraper's thread, once for each round.
  explicit Scraper(std::function<std::vector<ScrapeTarget>()> targets, ScrapeOptions options = {});
  ~Scraper();
  Scraper(const Scraper&) = delete;
  Scraper& operator=(const Scraper&) = delete;

  /// Null until programs have answered twice: a rate takes two samples.
  TrafficPtr traffic() const;
  /// The programs that did not answer in the last round, and those that are not asked.
  std::vector<Problem> problems() const;

 private:
  using Samples = std::map<std::string, Sample>;  // by pod

  void run(const std::stop_token& stop);
  Samples ask(const std::vector<ScrapeTarget>& targets, const std::stop_token& stop) const;
  void publish(const std::vector<ScrapeTarget>& targets, std::size_t in_all, const Samples& before,
               const Samples& after);

  const std::function<std::vector<ScrapeTarget>()> targets_;
  const ScrapeOptions options_;

  mutable std::mutex mutex_;
  // Guarded by mutex_.
  TrafficPtr traffic_;
  std::vector<Problem> problems_;

  std::jthread thread_;  // last: it uses the others
};

}  // namespace lookout::cmd::registry_cmd
