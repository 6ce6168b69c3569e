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
/// or is gone: forget() and keep_if() are for those who notice. Safe to use from any thread.
class MalformedPods {
 public:
  static constexpr std::size_t kMost = 1'000;

  void report(const registry::Malformed& malformed);
  void forget(const std::string& pod);
  void keep_if(const std::function<bool(const std::string& pod)>& there);
  /// In the order of the pods.
  std::vector<Problem> problems() const;

 private:
  mutable std::mutex mutex_;
  std::map<std::string, Problem> pods_;  // guarded by mutex_
};

}  // namespace lookout::cmd::registry_cmd
