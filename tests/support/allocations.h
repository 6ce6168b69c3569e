// How often a piece of code asks for memory.
#pragma once

#include <cstddef>

namespace lookout::test {

/// Calls of malloc and its like (operator new among them) that this thread has made so far.
std::size_t allocations();

/// How many of them `f` makes.
template <class F>
std::size_t allocations_of(F&& f) {
  const std::size_t before = allocations();
  f();
  return allocations() - before;
}

}  // namespace lookout::test
