#include "cmd/registry/page/malformed_pods.h"

#include <fmt/format.h>

#include <iterator>

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
  pods_.insert_or_assign(std::move(pod), Report{std::move(problem), malformed.resource_version});
}

void MalformedPods::forget(const std::string& pod) {
  const std::lock_guard lock(mutex_);
  pods_.erase(pod);
}

void MalformedPods::forget_gone(const Look& look) {
  const std::lock_guard lock(mutex_);
  for (auto it = pods_.begin(); it != pods_.end();) {
    Report& report = it->second;
    const Sight sight = look(it->first, report.version);
    if (sight.there && sight.current) report.seen = true;
    // After a server has lost its data, resource versions start over. A missing pod that was seen
    // before has been deleted.
    const bool gone = !sight.there && (sight.current || report.seen);
    it = gone ? pods_.erase(it) : std::next(it);
  }
}

std::vector<Problem> MalformedPods::problems() const {
  std::vector<Problem> out;
  const std::lock_guard lock(mutex_);
  out.reserve(pods_.size());
  for (const auto& [pod, report] : pods_) out.push_back(report.problem);
  return out;
}

}  // namespace lookout::cmd::registry_cmd
