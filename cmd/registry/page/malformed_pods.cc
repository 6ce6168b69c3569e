#include "cmd/registry/page/malformed_pods.h"

#include <fmt/format.h>

#include "cmd/registry/page/clip.h"

namespace lookout::cmd::registry_cmd {
namespace {

constexpr std::size_t kLongestReason = 300;

}  // namespace

void MalformedPods::report(const registry::Malformed& malformed) {
  Problem problem{.kind = "malformed",
                  .where = fmt::format("{}/{}", malformed.ns, malformed.name),
                  .reason = clip(malformed.reason, kLongestReason),
                  .at = std::chrono::system_clock::now()};
  const std::lock_guard lock(mutex_);
  if (pods_.size() >= kMost && !pods_.contains(problem.where)) return;
  std::string pod = problem.where;
  pods_.insert_or_assign(std::move(pod), std::move(problem));
}

void MalformedPods::forget(const std::string& pod) {
  const std::lock_guard lock(mutex_);
  pods_.erase(pod);
}

void MalformedPods::keep_if(const std::function<bool(const std::string& pod)>& there) {
  const std::lock_guard lock(mutex_);
  std::erase_if(pods_, [&](const auto& entry) { return !there(entry.first); });
}

std::vector<Problem> MalformedPods::problems() const {
  std::vector<Problem> out;
  const std::lock_guard lock(mutex_);
  out.reserve(pods_.size());
  for (const auto& [pod, problem] : pods_) out.push_back(problem);
  return out;
}

}  // namespace lookout::cmd::registry_cmd
