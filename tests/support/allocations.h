// How often a piece of code asks for memory.
#pragma once

#include <cstddef>

namespace lookout::test {

/// Calls of malloc and its like (operator new among them) that this thread has made so far.
std::size_t allocations();

/// The largest of them since the last call of this function, in bytes.
std::size_t take_largest_allocation();

/// How many of them `f` makes.
template <class F>
std::size_t allocations_of(F&& f) {
  const std::size_t before = allocations();
  f();
  return allocations() - before;
}

}  // namespace lookout::test
