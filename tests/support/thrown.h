// thrown() and refusal(): the exception of a call.
#pragma once

#include <gtest/gtest.h>

#include <exception>
#include <functional>
#include <optional>
#include <string>

#include "lookout/base/error.h"

namespace lookout::test {

/// The exception of `f`, if it is an E. Any other exception, or none, fails the test.
template <class E>
std::optional<E> thrown(const std::function<void()>& f) {
  try {
    f();
  } catch (const E& e) {
    return e;
  } catch (const std::exception& e) {
    ADD_FAILURE() << "threw something else: " << e.what();
    return std::nullopt;
  }
  ADD_FAILURE() << "threw nothing";
  return std::nullopt;
}

/// The message of the E that `f` throws; "" if it throws nothing.
template <class E = Error>
std::string refusal(const std::function<void()>& f) {
  try {
    f();
  } catch (const E& e) {
    return e.what();
  }
  return "";
}

}  // namespace lookout::test
