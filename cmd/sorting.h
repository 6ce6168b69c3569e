// The order of `lookout get --sort-by=PATH`.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/api/detail/json_path.h"
#include "lookout/api/quantity.h"
#include "lookout/api/value.h"

namespace lookout::cmd {

/// The value that an object is sorted by: a number or a text. An object that lacks the value has neither.
struct SortKey {
  std::optional<double> number = {};
  std::optional<std::string> text = {};
  /// The text, if it is a quantity.
  std::optional<api::Quantity> quantity = {};
  /// The value has another type, such as a list.
  bool unsortable = false;

  bool absent() const { return !number && !text && !unsortable; }
};

/// Whether `a` comes before `b`: numbers within the texts count as numbers (Go's sortorder.NaturalLess).
bool natural_less(std::string_view a, std::string_view b);

/// Sorts objects by the first value at a path, as kubectl does: numbers by their amount, texts, too, if all
/// are quantities, and otherwise naturally; objects without the value come first. Immutable.
class Sorting {
 public:
  /// Throws Error if the text is not a path.
  explicit Sorting(const std::string& path);

  /// Throws Error if an index is out of bounds.
  SortKey key(api::Value root) const;
  /// The indices of the keys in their order. Equal ones keep theirs. Throws Error if no object has the value,
  /// or if values cannot be compared.
  std::vector<std::size_t> order(const std::vector<SortKey>& keys) const;

 private:
  bool less(const SortKey& a, const SortKey& b, bool by_quantity) const;

  std::string text_;
  api::detail::JsonPath path_;
};

}  // namespace lookout::cmd
