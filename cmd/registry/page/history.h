// The most recent changes of each service.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "lookout/registry/instance_set.h"

namespace lookout::cmd::registry_cmd {

/// A change of an instance.
struct Change {
  std::chrono::system_clock::time_point at;
  std::string pod;
  /// "came", "left", "ready", "not ready", "leaving" or "changed".
  const char* event = "";
  /// For "changed": "version v1 → v2, metadata weight 1 → 2"; otherwise a reason, or empty.
  std::string detail = {};
};

/// Keeps the most recent changes of each service, also of removed services. Thread-safe.
class History {
 public:
  static constexpr std::size_t kChangesPerService = 50;
  /// The maximum number of services. Beyond it, the services with the oldest changes are dropped.
  static constexpr std::size_t kServices = 2'000;

  void add(const std::string& service, Change change);
  /// Newest first.
  std::vector<Change> of(const std::string& service) const;

 private:
  void forget_one();

  mutable std::mutex mutex_;
  std::map<std::string, std::deque<Change>> services_;  // guarded by mutex_; oldest first
};

/// Describes the difference between two announcements of an instance; long values are shortened.
/// Empty if only readiness differs.
std::string describe_change(const registry::ServiceInstance& before,
                            const registry::ServiceInstance& after);

}  // namespace lookout::cmd::registry_cmd
