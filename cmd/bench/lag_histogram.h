// LagHistogram: a compact histogram of durations.
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

namespace lookout::cmd::bench {

/// Counts microseconds in steps of at most 3 %. Not thread-safe.
class LagHistogram {
 public:
  void add(std::int64_t microseconds) {
    const auto value = static_cast<std::uint64_t>(std::max<std::int64_t>(microseconds, 0));
    ++counts_[bucket_of(value)];
    ++count_;
    max_ = std::max(max_, value);
  }
  void add(const LagHistogram& other) {
    for (std::size_t bucket = 0; bucket < counts_.size(); ++bucket) {
      counts_[bucket] += other.counts_[bucket];
    }
    count_ += other.count_;
    max_ = std::max(max_, other.max_);
  }
  std::uint64_t count() const { return count_; }
  double max_ms() const { return static_cast<double>(max_) / 1000; }
  /// The quantile for `part` (0.99).
  double quantile_ms(double part) const {
    const auto wanted = static_cast<std::uint64_t>(part * static_cast<double>(count_));
    std::uint64_t seen = 0;
    for (std::size_t bucket = 0; bucket < counts_.size(); ++bucket) {
      seen += counts_[bucket];
      if (seen > wanted) return std::min(static_cast<double>(end_of(bucket)) / 1000, max_ms());
    }
    return max_ms();
  }

 private:
  static constexpr std::size_t kSteps = 32;  // between a power of two and the next one

  static std::size_t bucket_of(std::uint64_t value) {
    if (value < kSteps) return static_cast<std::size_t>(value);
    const auto shift = static_cast<std::size_t>(std::bit_width(value)) - 6;
    return (shift + 1) * kSteps + static_cast<std::size_t>(value >> shift) - kSteps;
  }
  static std::uint64_t end_of(std::size_t bucket) {
    if (bucket < kSteps) return bucket;
    const std::size_t shift = bucket / kSteps - 1;
    return (bucket % kSteps + kSteps + 1) << shift;
  }

  std::array<std::uint64_t, 60 * kSteps> counts_{};
  std::uint64_t count_ = 0;
  std::uint64_t max_ = 0;
};

}  // namespace lookout::cmd::bench
