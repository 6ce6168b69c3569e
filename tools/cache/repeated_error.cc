#include "lookout/tools/cache/detail/repeated_error.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace lookout::cache {
namespace {

/// Removes each `begin` and the text after it, up to a character of `ends`.
std::string without(std::string_view text, std::string_view begin, std::string_view ends) {
  std::string out;
  for (;;) {
    const std::size_t at = text.find(begin);
    if (at == std::string_view::npos) return out.append(text);
    out.append(text.substr(0, at));
    text.remove_prefix(at + begin.size());
    text.remove_prefix(std::min(text.find_first_of(ends), text.size()));
  }
}

/// The part of a message that is the same when the same request fails in the same way.
std::string essence(std::string_view text) {
  // "GET https://host/api/v1/pods?watch=true&timeoutSeconds=465: connect failed after 12 ms". Keys
  // and values of a query are percent-encoded.
  return without(without(text, "?", ": "), " after ", " ");
}

}  // namespace

bool RepeatedError::repeats(const std::exception& error) {
  const auto now = clock_->now();
  std::string text = essence(error.what());
  if (text == noted_ && now - noted_at_ < kLogAgain) return true;
  noted_ = std::move(text);
  noted_at_ = now;
  return false;
}

}  // namespace lookout::cache
