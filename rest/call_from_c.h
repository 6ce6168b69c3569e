// C++ callbacks for C libraries.
#pragma once

#include <exception>
#include <string>

namespace lookout::rest::detail {

/// Returns the result of `f`. An exception must not unwind through C frames: if `f` throws, returns
/// `otherwise` and sets `failure` to the reason.
template <class Result, class F>
Result call_from_c(std::string& failure, Result otherwise, F f) noexcept {
  try {
    return f();
  } catch (const std::exception& e) {
    // (std::bad_alloc's what() fits into a string without allocation.)
    failure = e.what();
  } catch (...) {
    failure = "an unknown failure";
  }
  return otherwise;
}

}  // namespace lookout::rest::detail
