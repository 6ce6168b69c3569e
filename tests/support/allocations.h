// Counts allocations.
#pragma once

#include <cstddef>

namespace lookout::test {

/// The number of allocations (malloc, operator new and so on) of this thread so far.
std::size_t allocations();

/// The largest of them since the last call of this function, in bytes.
std::size_t take_largest_allocation();

/// The number of allocations in `f`.
template <class F>
std::size_t allocations_of(F&& f) {
  const std::size_t before = allocations();
  f();
  return allocations() - before;
}

}  // namespace lookout::test
