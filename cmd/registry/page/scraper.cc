#include "cmd/registry/page/scraper.h"

#include <curl/curl.h>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "cmd/pause.h"

namespace lookout::cmd::registry_cmd {
namespace {

struct Body {
  std::string text = {};
  std::size_t most = 0;
};

std::size_t take(char* data, std::size_t size, std::size_t count, void* out) {
  auto& body = *static_cast<Body*>(out);
  if (body.text.size() + size * count > body.most) return 0;  // aborts the transfer
  body.text.append(data, size * count);
  return size * count;
}

int ask_for_stop(void* stop, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
  return static_cast<const std::stop_token*>(stop)->stop_requested() ? 1 : 0;
}

}  // namespace

std::optional<std::string> fetch_metrics(const std::string& url, const ScrapeOptions& options,
                                         const std::stop_token& stop) {
  const std::unique_ptr<CURL, decltype(&curl_easy_cleanup)> curl(curl_easy_init(),
                                                                 &curl_easy_cleanup);
  if (!curl) return std::nullopt;
  Body body{.most = options.most_bytes};
  curl_easy_setopt(curl.get(), CURLOPT_URL, url.c_str());
  curl_easy_setopt(curl.get(), CURLOPT_PROTOCOLS_STR, "http");
  curl_easy_setopt(curl.get(), CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(curl.get(), CURLOPT_PROXY, "");
  curl_easy_setopt(curl.get(), CURLOPT_NETRC, static_cast<long>(CURL_NETRC_IGNORED));
  curl_easy_setopt(curl.get(), CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl.get(), CURLOPT_TIMEOUT_MS, static_cast<long>(options.timeout.count()));
  curl_easy_setopt(curl.get(), CURLOPT_USERAGENT, "lookout-registry");
  curl_easy_setopt(curl.get(), CURLOPT_WRITEFUNCTION, &take);
  curl_easy_setopt(curl.get(), CURLOPT_WRITEDATA, &body);
  curl_easy_setopt(curl.get(), CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl.get(), CURLOPT_XFERINFOFUNCTION, &ask_for_stop);
  curl_easy_setopt(curl.get(), CURLOPT_XFERINFODATA, &stop);
  if (curl_easy_perform(curl.get()) != CURLE_OK) return std::nullopt;
  long status = 0;
  curl_easy_getinfo(curl.get(), CURLINFO_RESPONSE_CODE, &status);
  if (status != 200) return std::nullopt;
  return std::move(body.text);
}

Scraper::Scraper(std::function<std::vector<ScrapeTarget>()> targets, ScrapeOptions options)
    : targets_(std::move(targets)),
      options_(options),
      thread_([this](const std::stop_token& stop) { run(stop); }) {}

Scraper::~Scraper() = default;

TrafficPtr Scraper::traffic() const {
  const std::lock_guard lock(mutex_);
  return traffic_;
}

std::vector<Problem> Scraper::problems() const {
  const std::lock_guard lock(mutex_);
  return problems_;
}

void Scraper::run(const std::stop_token& stop) {
  Samples before;
  while (!stop.stop_requested()) {
    const auto begin = std::chrono::steady_clock::now();
    auto targets = targets_();
    std::ranges::sort(targets, {}, &ScrapeTarget::pod);
    const std::size_t in_all = targets.size();
    if (targets.size() > options_.most_targets) targets.resize(options_.most_targets);
    Samples after = ask(targets, stop);
    if (stop.stop_requested()) return;
    publish(targets, in_all, before, after);
    before = std::move(after);
    pause_until(stop, begin + options_.interval);
  }
}

Scraper::Samples Scraper::ask(const std::vector<ScrapeTarget>& targets,
                              const std::stop_token& stop) const {
  Samples out;
  std::mutex mutex;  // of `out`
  std::atomic<std::size_t> next{0};
  const auto work = [&] {
    for (std::size_t i = next++; i < targets.size() && !stop.stop_requested(); i = next++) {
      const auto text = fetch_metrics(targets[i].url, options_, stop);
      if (!text) continue;
      Sample sample = read_sample(*text, std::chrono::steady_clock::now());
      const std::lock_guard lock(mutex);
      out.insert_or_assign(targets[i].pod, std::move(sample));
    }
  };
  std::vector<std::jthread> workers;
  for (std::size_t i = 0; i < std::min(options_.at_a_time, targets.size()); ++i) {
    workers.emplace_back(work);
  }
  workers.clear();  // joins the threads
  return out;
}

void Scraper::publish(const std::vector<ScrapeTarget>& targets, std::size_t in_all,
                      const Samples& before, const Samples& after) {
  auto traffic = std::make_shared<Traffic>();
  traffic->asked = targets.size();
  traffic->answered = after.size();
  bool any_rate = false;
  std::vector<Problem> problems;
  if (in_all > targets.size()) {
    problems.push_back({.kind = "metrics",
                        .reason = fmt::format("only the first {} of {} programs are scraped",
                                              targets.size(), in_all)});
  }
  for (const auto& target : targets) {
    const auto now = after.find(target.pod);
    if (now == after.end()) {
      problems.push_back({.kind = "metrics",
                          .where = target.pod,
                          .reason = "the program does not answer with metrics"});
      continue;
    }
    const auto was = before.find(target.pod);
    if (was == before.end()) continue;
    add_rates(*traffic, was->second, now->second);
    any_rate = true;
  }
  sum_up(*traffic);
  const std::lock_guard lock(mutex_);
  traffic_ = any_rate || targets.empty() ? std::move(traffic) : nullptr;
  problems_ = std::move(problems);
}

}  // namespace lookout::cmd::registry_cmd
