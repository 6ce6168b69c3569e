// The pods whose announcement cannot be read.
#pragma once

#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "cmd/registry/page/notes.h"
#include "lookout/registry/options.h"

namespace lookout::cmd::registry_cmd {

/// Collects reports (registry::Options::on_malformed). Nobody reports that a pod has been repaired
/// or is gone: forget() and forget_gone() are for those who notice. Safe to use from any thread.
class MalformedPods {
 public:
  static constexpr std::size_t kMost = 1'000;

  void report(const registry::Malformed& malformed);
  void forget(const std::string& pod);

  /// What a follower of the pods knows of one.
  struct Sight {
    bool there = false;
    /// The follower has come to the version that was reported. Before that, a pod that is not there
    /// may still come.
    bool current = false;
  };
  using Look = std::function<Sight(const std::string& pod, const std::string& resource_version)>;
  void forget_gone(const Look& look);

  /// In the order of the pods.
  std::vector<Problem> problems() const;

 private:
  struct Report {
    Problem problem;
    std::string version;
    bool seen = false;  // the follower had it, in this version or a later one
  };
  mutable std::mutex mutex_;
  std::map<std::string, Report> pods_;  // guarded by mutex_
};

}  // namespace lookout::cmd::registry_cmd
