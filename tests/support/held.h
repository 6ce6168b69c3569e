// Views of temporaries in tests.
#pragma once

#include "lookout/base/attributes.h"

namespace lookout::test {

/// Returns a temporary as an lvalue, so that views of it may be taken in the same expression. Clang
/// warns if a view outlives the expression.
template <class T>
const T& held(const T& object LOOKOUT_LIFETIME_BOUND) {
  return object;
}

}  // namespace lookout::test
