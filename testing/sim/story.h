// The story of a world: a table for people to read.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "testing/sim/kernel.h"

namespace lookout::sim {

/// Entries in the order in which things began. Safe to use from any thread.
class Story {
 public:
  struct Entry {
    Nanos time = 0;
    std::string process;
    /// "PUT /api/v1/...", or what else happened.
    std::string what;
    /// "200", or why there was no answer; empty: none yet.
    std::string answer;
    std::string fault;
    bool writes = false;
    /// A note of the world's own: shown like a fault.
    bool is_note = false;

    bool is_important() const { return is_note || !fault.empty(); }
  };

  /// The number of the entry, for answer().
  std::size_t add(Entry entry);
  void answer(std::size_t number, std::string text);

  /// At most so many lines: faults and notes, the writes around them, and the last ones.
  std::string print(std::size_t lines) const;
  std::uint64_t digest() const;

 private:
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
};

}  // namespace lookout::sim
