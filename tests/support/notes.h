// Notes: messages from other threads.
#pragma once

#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace lookout::test {

/// Lines of text, in order of arrival. Safe to use from any thread.
class Notes {
 public:
  void add(std::string line) {
    const std::lock_guard lock(mutex_);
    lines_.push_back(std::move(line));
  }
  std::vector<std::string> all() const {
    const std::lock_guard lock(mutex_);
    return lines_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> lines_;
};

}  // namespace lookout::test
