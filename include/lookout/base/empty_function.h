// is_empty_function(): finds functions that cannot be called, before they are needed.
#pragma once

#include <cstddef>
#include <type_traits>

namespace lookout::base {

/// True for an empty std::function and for a null pointer to a function; false for all other function
/// objects. For templates that wrap a function: the wrapper itself is never empty.
template <class Function>
bool is_empty_function(const Function& function) {
  if constexpr (std::is_constructible_v<Function, std::nullptr_t> &&
                std::is_constructible_v<bool, const Function&>) {
    return !static_cast<bool>(function);
  } else {
    return false;
  }
}

}  // namespace lookout::base
