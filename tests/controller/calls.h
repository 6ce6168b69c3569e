// Calls: records the requests of a reconciler.
#pragma once

#include <cstddef>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "lookout/controller/context.h"
#include "lookout/controller/request.h"
#include "lookout/controller/result.h"

namespace lookout::controller {

/// The requests that a reconciler received.
class Calls {
 public:
  void note(const Request& request) {
    const std::lock_guard lock(mutex_);
    ++counts_[request.key()];
    order_.push_back(request.key());
  }
  int of(const std::string& key) const {
    const std::lock_guard lock(mutex_);
    const auto at = counts_.find(key);
    return at == counts_.end() ? 0 : at->second;
  }
  std::size_t keys() const {
    const std::lock_guard lock(mutex_);
    return counts_.size();
  }
  std::vector<std::string> order() const {
    const std::lock_guard lock(mutex_);
    return order_;
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::string, int> counts_;
  std::vector<std::string> order_;
};

/// A reconciler that only notes its requests.
inline auto noting(Calls& calls) {
  return [&calls](const Request& request, Context&) -> Result {
    calls.note(request);
    return {};
  };
}

}  // namespace lookout::controller
