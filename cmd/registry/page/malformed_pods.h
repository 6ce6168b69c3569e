// The pods with malformed announcements.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "cmd/registry/page/notes.h"
#include "lookout/registry/options.h"

namespace lookout::cmd::registry_cmd {

/// Collects the reports of registry::Options::on_malformed. Repaired and deleted pods are not
/// reported: the caller removes them with forget() and forget_gone(). Thread-safe.
class MalformedPods {
 public:
  static constexpr std::size_t kMost = 1'000;

  void report(const registry::Malformed& malformed);
  void forget(const std::string& pod);

  /// The state of a pod in a PodFollower.
  struct Sight {
    bool there = false;
    /// The follower has reached the reported resource version. Before that, a missing pod may still
    /// appear.
    bool current = false;
  };
  using Look = std::function<Sight(const std::string& pod, const std::string& resource_version)>;
  void forget_gone(const Look& look);

  /// Sorted by pod.
  std::vector<Problem> problems() const;

 private:
  struct Report {
    Problem problem;
    std::string version;
    bool seen = false;  // the follower has had the pod in this or a later version
  };
  mutable std::mutex mutex_;
  std::map<std::string, Report> pods_;  // guarded by mutex_
};

}  // namespace lookout::cmd::registry_cmd
