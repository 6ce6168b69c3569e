#include "cmd/registry/page/history.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "cmd/registry/page/clip.h"

namespace lookout::cmd::registry_cmd {
namespace {

constexpr std::size_t kLongestValue = 40;
constexpr std::size_t kMostDifferences = 5;

using Differences = std::vector<std::string>;

void compare(Differences& out, std::string_view name, const std::string& before,
             const std::string& after) {
  if (before == after) return;
  const auto shown = [](const std::string& value) {
    return value.empty() ? std::string("none") : clip(value, kLongestValue);
  };
  out.push_back(fmt::format("{} {} → {}", clip(name, kLongestValue), shown(before), shown(after)));
}

std::string joined(const std::vector<registry::Endpoint>& endpoints) {
  std::string out;
  for (const auto& endpoint : endpoints) {
    if (!out.empty()) out += ' ';
    out += endpoint.text();
  }
  return out;
}

std::string value_of(const registry::ServiceInstance& instance, const std::string& key) {
  const auto found = instance.metadata.find(key);
  return found == instance.metadata.end() ? "" : found->second;
}

}  // namespace

void History::add(const std::string& service, Change change) {
  const std::lock_guard lock(mutex_);
  auto& changes = services_[service];
  changes.push_back(std::move(change));
  if (changes.size() > kChangesPerService) changes.pop_front();
  if (services_.size() > kServices) forget_one();
}

void History::forget_one() {
  const auto last = [](const auto& entry) { return entry.second.back().at; };
  services_.erase(std::ranges::min_element(services_, {}, last));
}

std::vector<Change> History::of(const std::string& service) const {
  const std::lock_guard lock(mutex_);
  const auto found = services_.find(service);
  if (found == services_.end()) return {};
  return {found->second.rbegin(), found->second.rend()};
}

std::string describe_change(const registry::ServiceInstance& before,
                            const registry::ServiceInstance& after) {
  Differences out;
  compare(out, "id", before.id, after.id);
  compare(out, "version", before.version, after.version);
  compare(out, "zone", before.zone, after.zone);
  compare(out, "endpoints", joined(before.endpoints), joined(after.endpoints));
  std::set<std::string> keys;
  for (const auto& [key, value] : before.metadata) keys.insert(key);
  for (const auto& [key, value] : after.metadata) keys.insert(key);
  for (const auto& key : keys) {
    compare(out, "metadata " + key, value_of(before, key), value_of(after, key));
  }
  if (out.size() > kMostDifferences) {
    const std::size_t more = out.size() - kMostDifferences;
    out.resize(kMostDifferences);
    out.push_back(fmt::format("{} more", more));
  }
  return fmt::format("{}", fmt::join(out, ", "));
}

}  // namespace lookout::cmd::registry_cmd
