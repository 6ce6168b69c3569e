// Result: the result of a benchmark.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace lookout::cmd::bench {

/// Named figures, in the order in which they were added. Names say the unit (wall_s, vm_hwm in
/// bytes); bench/peers/ use the same.
class Result {
 public:
  using Figure = std::variant<std::int64_t, double, std::string>;

  void set(std::string name, Figure figure);
  /// Zero if there is none of that name.
  double number(std::string_view name) const;
  /// One line of JSON, or lines to read.
  std::string json() const;
  std::string text() const;

 private:
  std::vector<std::pair<std::string, Figure>> figures_;
};

}  // namespace lookout::cmd::bench
