// EnumNames: names for the values of an enumeration.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace lookout::base {

/// Maps N values of E to names and back. enum_names() makes a constant of this type; lookups are
/// linear.
template <class E, std::size_t N>
class EnumNames {
 public:
  struct Entry {
    E value;
    std::string_view name;
  };

  constexpr explicit EnumNames(const std::array<Entry, N>& entries) : entries_(entries) {}

  /// Returns `otherwise` for a value without a name.
  constexpr std::string_view name_of(E value, std::string_view otherwise = {}) const {
    for (const Entry& entry : entries_) {
      if (entry.value == value) return entry.name;
    }
    return otherwise;
  }

  /// Empty for an unknown name.
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
