// Result: the result of a benchmark.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace lookout::cmd::bench {

/// Named figures, in order of addition. Names contain the unit (wall_s; vm_hwm is in bytes); the programs
/// in bench/peers/ use the same names.
class Result {
 public:
  using Figure = std::variant<std::int64_t, double, std::string>;

  void set(std::string name, Figure figure);
  /// 0 if there is no figure with this name.
  double number(std::string_view name) const;
  /// One line of JSON, or a table.
  std::string json() const;
  std::string text() const;

 private:
  std::vector<std::pair<std::string, Figure>> figures_;
};

}  // namespace lookout::cmd::bench
