#include "cmd/sim/seeds.h"

#include <fmt/format.h>

#include <algorithm>

#include "lookout/base/numbers.h"

namespace lookout::cmd::sim {

using base::parse_number;

Seeds Seeds::take(std::uint64_t most) {
  const Seeds out{first, first + std::min(most, count()) - 1};
  // There is no seed after the largest number.
  if (out.last == last) last = 0;
  first = std::max<std::uint64_t>(out.last + 1, 1);
  return out;
}

std::string Seeds::text() const { return fmt::format("{}-{}", first, last); }

std::optional<Seeds> parse_seeds(std::string_view text) {
  Seeds out;
  const std::size_t dash = text.find('-');
  const auto first = parse_number<std::uint64_t>(text.substr(0, dash));
  if (!first) return std::nullopt;
  if (dash == std::string_view::npos) {
    out.last = *first;
  } else {
    out.first = *first;
    if (dash + 1 < text.size()) {
      const auto last = parse_number<std::uint64_t>(text.substr(dash + 1));
      if (!last) return std::nullopt;
      out.last = *last;
    }
  }
  if (out.first == 0 || out.empty()) return std::nullopt;
  return out;
}

}  // namespace lookout::cmd::sim
