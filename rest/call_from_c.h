// C++ that C calls.
#pragma once

#include <exception>
#include <string>
#include <utility>

namespace lookout::rest::detail {

/// What `f` returns. An exception must not unwind through the frames of C: if `f` throws, returns
/// `otherwise`, and `failure` says why.
template <class Result, class F>
Result call_from_c(std::string& failure, Result otherwise, F f) noexcept {
  try {
    return f();
  } catch (const std::exception& e) {
    // (What() of std::bad_alloc fits into a string without memory of its own.)
    failure = e.what();
  } catch (...) {
    failure = "an unknown failure";
  }
  return otherwise;
}

}  // namespace lookout::rest::detail
