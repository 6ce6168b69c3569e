// Story: the log of a world, printed as a table.
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include "testing/sim/kernel.h"

namespace lookout::sim {

/// Entries, ordered by start time. Safe to use from any thread.
class Story {
 public:
  struct Entry {
    Nanos time = 0;
    std::string process;
    /// "PUT /api/v1/...", or another event.
    std::string what;
    /// "200", or the reason for a missing response; empty: none yet.
    std::string answer;
    std::string fault;
    bool writes = false;
    /// A note of the world itself, shown like a fault.
    bool is_note = false;

    bool is_important() const { return is_note || !fault.empty(); }
  };

  /// The number of the entry, for answer().
  std::size_t add(Entry entry);
  void answer(std::size_t number, std::string text);

  /// Prints at most `lines` lines: faults and notes, the writes around them, and the last ones.
  std::string print(std::size_t lines) const;
  std::uint64_t digest() const;

 private:
  mutable std::mutex mutex_;
  std::vector<Entry> entries_;
};

}  // namespace lookout::sim
