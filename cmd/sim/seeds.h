// Seeds on the command line.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>

namespace lookout::cmd::sim {

/// `last` included.
struct Seeds {
  std::uint64_t first = 1;
  std::uint64_t last = std::numeric_limits<std::uint64_t>::max();

  bool operator==(const Seeds&) const = default;
  bool empty() const { return first > last; }
  bool endless() const { return last == std::numeric_limits<std::uint64_t>::max(); }
  std::uint64_t count() const { return empty() ? 0 : last - first + 1; }
  /// Takes at most so many from the front.
  Seeds take(std::uint64_t most);
  /// "1-50", as LOOKOUT_SIM_SEEDS has it.
  std::string text() const;
};

/// Reads "10000" (1 to 10000), "5001-6000" and "5001-" (without end); nothing for anything else.
std::optional<Seeds> parse_seeds(std::string_view text);

}  // namespace lookout::cmd::sim
