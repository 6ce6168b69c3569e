// A function that runs in a process of its own.
#pragma once

#include <functional>
#include <optional>
#include <string>

namespace lookout::sim {

/// Forks, runs the function in the child, and waits for its end. Nothing that the child does is
/// seen here but what the function returns. There must be no other threads in this process: the
/// child would find their locks locked.
class ForkedCall {
 public:
  explicit ForkedCall(const std::function<std::string()>& function);

  /// Nothing if the function has returned: else "it was ended by signal 6 (Aborted)".
  const std::optional<std::string>& why_it_died() const { return why_; }
  const std::string& result() const { return result_; }

 private:
  std::string result_;
  std::optional<std::string> why_;
};

}  // namespace lookout::sim
