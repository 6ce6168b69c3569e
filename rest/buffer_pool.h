// BufferPool: reuses buffers.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

namespace lookout::rest::detail {

/// Buffers that no exchange uses at present. Saves paged lists and busy watches from allocating new
/// buffers continually.
class BufferPool {
 public:
  /// Returns an empty buffer, usually with capacity.
  std::string take() {
    const std::lock_guard lock(mutex_);
    if (spare_.empty()) return {};
    std::string out = std::move(spare_.back());
    spare_.pop_back();
    return out;
  }
  /// Keeps the buffer if the pool has few, else frees it.
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
