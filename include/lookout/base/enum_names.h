// Enumerations whose values have names in a text.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace lookout::base {

/// The values of N of E and what they are called, in both directions. A constant that
/// enum_names() makes; look-ups are linear.
template <class E, std::size_t N>
class EnumNames {
 public:
  struct Entry {
    E value;
    std::string_view name;
  };

  constexpr explicit EnumNames(const std::array<Entry, N>& entries) : entries_(entries) {}

  /// `otherwise` for a value that has no name.
  constexpr std::string_view name_of(E value, std::string_view otherwise = {}) const {
    for (const Entry& entry : entries_) {
      if (entry.value == value) return entry.name;
    }
    return otherwise;
  }

  /// Nothing for a name that no value has.
  constexpr std::optional<E> value_of(std::string_view name) const {
    for (const Entry& entry : entries_) {
      if (entry.name == name) return entry.value;
    }
    return std::nullopt;
  }

 private:
  std::array<Entry, N> entries_;
};

template <class E, std::size_t N>
constexpr EnumNames<E, N> enum_names(const typename EnumNames<E, N>::Entry (&entries)[N]) {
  return EnumNames<E, N>(std::to_array(entries));
}

}  // namespace lookout::base
