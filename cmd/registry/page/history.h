// The last changes of each service.
#pragma once

#include <chrono>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "lookout/registry/instance_set.h"

namespace lookout::cmd::registry_cmd {

/// Something happened to an instance.
struct Change {
  std::chrono::system_clock::time_point at;
  std::string pod;
  /// "came", "left", "ready", "not ready", "leaving" or "changed".
  const char* event = "";
  /// For "changed": "version v1 → v2, metadata weight 1 → 2"; otherwise a reason, or empty.
  std::string detail = {};
};

/// Keeps the last changes of each service, also of services that have gone. Safe to use from any
/// thread.
class History {
 public:
  static constexpr std::size_t kChangesPerService = 50;
  /// Of more services than these, those that changed least recently are forgotten.
  static constexpr std::size_t kServices = 2'000;

  void add(const std::string& service, Change change);
  /// The newest first.
  std::vector<Change> of(const std::string& service) const;

 private:
  void forget_one();

  mutable std::mutex mutex_;
  std::map<std::string, std::deque<Change>> services_;  // guarded by mutex_; the oldest first
};

/// The difference between two announcements of an instance, for people. Shortened where it is long;
/// empty if only readiness differs.
std::string describe_change(const registry::ServiceInstance& before,
                            const registry::ServiceInstance& after);

}  // namespace lookout::cmd::registry_cmd
