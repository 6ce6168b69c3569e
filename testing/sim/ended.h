// The outcome of a world, and its encoding for another process.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/testing/sim/world.h"

namespace lookout::sim {

/// A request of a process.
struct Traced {
  std::string process;
  std::uint64_t number = 0;
  std::string method;
  std::string target;
  Time time{0};

  bool operator==(const Traced&) const = default;
};

struct Ended {
  std::optional<std::string> violation = {};
  Plan struck = {};
  std::string story = {};
  std::map<std::string, std::string> state = {};
  std::uint64_t digest = 0;
  std::uint64_t requests = 0;
  Time simulated{0};
  std::vector<Traced> trace = {};
};

std::string encode(const Ended& ended);
std::string encode(const Fault& fault);
/// Throws lookout::Error if the text is truncated.
Ended decode(std::string_view text);
/// Decodes a sequence of faults.
Plan decode_faults(std::string_view text);

}  // namespace lookout::sim
