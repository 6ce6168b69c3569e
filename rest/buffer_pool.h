// Memory that is used again.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace lookout::rest::detail {

/// Buffers that no exchange needs at the moment: a list in pages, or a watch whose reader catches
/// up again and again, would otherwise make new ones all the time, and the kernel their pages.
class BufferPool {
 public:
  /// One to write into; most likely with room.
  std::string take() {
    const std::lock_guard lock(mutex_);
    if (spare_.empty()) return {};
    std::string out = std::move(spare_.back());
    spare_.pop_back();
    return out;
  }
  /// Keeps it if there are few, else frees it.
  void give(std::string buffer) {
    if (buffer.capacity() < kSmall || buffer.capacity() > kLarge) return;
    buffer.clear();
    const std::lock_guard lock(mutex_);
    if (spare_.size() < kMost) spare_.push_back(std::move(buffer));
  }

 private:
  static constexpr std::size_t kMost = 2;
  static constexpr std::size_t kSmall = 4096;
  static constexpr std::size_t kLarge = 1u << 20;

  std::mutex mutex_;
  std::vector<std::string> spare_;
};

}  // namespace lookout::rest::detail
