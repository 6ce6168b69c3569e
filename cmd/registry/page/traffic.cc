#include "cmd/registry/page/traffic.h"

#include <algorithm>
#include <cmath>

#include "cmd/registry/page/metrics_text.h"

namespace lookout::cmd::registry_cmd {
namespace {

constexpr std::string_view kPrefix = "lookout_registry_";

double grown(double before, double after) { return after >= before ? after - before : after; }

/// Rounds to two decimal places.
double rounded(double rate) { return std::round(rate * 100) / 100; }

}  // namespace

Sample read_sample(std::string_view metrics, std::chrono::steady_clock::time_point at) {
  Sample out{at};
  read_metrics(metrics, kPrefix, [&](MetricLine line) {
    const std::string_view name = line.name.substr(kPrefix.size());
    if (name != "picks_total" && name != "errors_total" && name != "instance_ejected") return;
    if (line.instance.empty() || line.value < 0) return;
    const std::pair key(std::move(line.service), std::move(line.instance));
    if (out.instances.size() >= kMostInstancesOfAProgram && !out.instances.contains(key)) return;
    Counts& counts = out.instances[key];
    if (name == "picks_total") counts.picks = line.value;
    if (name == "errors_total") counts.errors = line.value;
    if (name == "instance_ejected") counts.ejected = line.value > 0;
  });
  return out;
}

void add_rates(Traffic& traffic, const Sample& before, const Sample& after) {
  const std::chrono::duration<double> time = after.at - before.at;
  if (time.count() <= 0) return;
  for (const auto& [key, now] : after.instances) {
    const auto found = before.instances.find(key);
    const Counts was = found == before.instances.end() ? Counts() : found->second;
    Rates& rates = traffic.services[key.first].instances[key.second];
    rates.picks += grown(was.picks, now.picks) / time.count();
    rates.errors += grown(was.errors, now.errors) / time.count();
    rates.ejected += now.ejected ? 1 : 0;
    ++rates.callers;
  }
}

void sum_up(Traffic& traffic) {
  for (auto& [name, service] : traffic.services) {
    service.all = {};
    for (auto& [pod, rates] : service.instances) {
      service.all.picks += rates.picks;
      service.all.errors += rates.errors;
      service.all.ejected += rates.ejected > 0 ? 1 : 0;
      service.all.callers = std::max(service.all.callers, rates.callers);
      rates.picks = rounded(rates.picks);
      rates.errors = rounded(rates.errors);
    }
    service.all.picks = rounded(service.all.picks);
    service.all.errors = rounded(service.all.errors);
  }
}

}  // namespace lookout::cmd::registry_cmd
