// Passes servers' warnings to a handler.
#pragma once

#include <mutex>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "lookout/rest/warning.h"

namespace lookout::rest::detail {

/// Parses a Warning header with one or more warnings (k8s.io/apimachinery's
/// net.ParseWarningHeaders). Stops at the first malformed one.
std::vector<Warning> parse_warnings(std::string_view header);

/// Passes each warning text to the handler once. Thread-safe.
class Warnings {
 public:
  /// Without a handler they are logged.
  explicit Warnings(WarningHandler handler) : handler_(std::move(handler)) {}

  /// `headers`: the Warning headers of the response to `request`.
  void tell(const std::vector<std::string>& headers, const std::string& request);

 private:
  bool is_new(const std::string& text);

  const WarningHandler handler_;
  std::mutex mutex_;
  std::unordered_set<std::string> told_;  // guarded by mutex_
};

}  // namespace lookout::rest::detail
