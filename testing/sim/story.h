// What happened in a world, for people.
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
  };

  /// The number of the entry, for answer().
  std::size_t add(Entry entry);
  void answer(std::size_t number, std::string text);

  /// At most so many lines: entries with faults, those around them, and the last ones.
  std::string print(std::size_t lines) const;
  std::uint64_t digest() const;

 private:
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
};

}  // namespace lookout::sim
