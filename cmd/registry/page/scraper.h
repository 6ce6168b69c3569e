// Scrapes the metrics of pods.
#pragma once

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
#include "lookout/base/pinned.h"

namespace lookout::cmd::registry_cmd {

struct ScrapeOptions {
  /// From the start of one round to the start of the next.
  std::chrono::milliseconds interval{10'000};
  /// For one request, including the connection.
  std::chrono::milliseconds timeout{1'000};
  std::size_t at_a_time = 4;
  std::size_t most_bytes = 8u << 20;
  /// The maximum number of targets; further ones, in name order, are not scraped.
  std::size_t most_targets = 1'000;
};

/// The body of a response with status 200 and a size within the limits, else nullopt. Sends a plain
/// HTTP GET without credentials; follows no redirects and uses no proxy.
std::optional<std::string> fetch_metrics(const std::string& url, const ScrapeOptions& options,
                                         const std::stop_token& stop);

/// Scrapes all targets periodically, several in parallel.
class Scraper : public base::Pinned {
 public:
  /// `targets` is called on the scraper's thread, once per round.
  explicit Scraper(std::function<std::vector<ScrapeTarget>()> targets, ScrapeOptions options = {});
  ~Scraper();

  /// Null until there are two rounds: a rate needs two samples.
  TrafficPtr traffic() const;
  /// The targets that did not respond in the last round, and the number of targets not scraped.
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

  std::jthread thread_;  // last: uses the other members
};

}  // namespace lookout::cmd::registry_cmd
