// Seeds on the command line.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace lookout::cmd::sim {

/// A range of seeds; `last` is included.
struct Seeds {
  std::uint64_t first = 1;
  std::uint64_t last = std::numeric_limits<std::uint64_t>::max();

  bool operator==(const Seeds&) const = default;
  bool empty() const { return first > last; }
  bool endless() const { return last == std::numeric_limits<std::uint64_t>::max(); }
  std::uint64_t count() const { return empty() ? 0 : last - first + 1; }
  /// Removes and returns at most this many from the front.
  Seeds take(std::uint64_t most);
  /// "1-50", the form of LOOKOUT_SIM_SEEDS.
  std::string text() const;
};

/// Reads "10000" (1 to 10000), "5001-6000" and "5001-" (no end); nullopt for anything else.
std::optional<Seeds> parse_seeds(std::string_view text);

}  // namespace lookout::cmd::sim
