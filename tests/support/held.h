// Looking into an object that a function has just returned.
#pragma once

#include "lookout/base/attributes.h"

namespace lookout::test {

/// The object as something that may be looked into, for the rest of the expression: of temporaries
/// there are no views. Clang warns if a view outlives the expression.
template <class T>
const T& held(const T& object LOOKOUT_LIFETIME_BOUND) {
  return object;
}

}  // namespace lookout::test
