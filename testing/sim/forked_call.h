// ForkedCall: runs a function in a child process.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "lookout/base/pinned.h"

namespace lookout::sim {

/// Forks, runs the function in the child, and waits for its end. The parent sees only the function's
/// result. This process must have no other threads, whose locks would stay locked in the child.
class ForkedCall {
 public:
  explicit ForkedCall(const std::function<std::string()>& function);

  /// Empty if the function has returned; otherwise "the world was ended by signal 6 (Aborted)".
  const std::optional<std::string>& why_it_died() const { return why_; }
  const std::string& result() const { return result_; }

 private:
  std::string result_;
  std::optional<std::string> why_;
};

/// Text that a process shares with its children. It survives the death of a child.
class SharedText : public base::Pinned {
 public:
  /// Throws std::system_error if there is no memory.
  SharedText();
  ~SharedText();

  /// Does nothing if the text is full.
  void add(std::string_view text);
  std::string_view text() const;

 private:
  struct Memory {
    std::atomic<std::size_t> size{0};
    char bytes[256 << 10];
  };

  Memory* const memory_;
};

}  // namespace lookout::sim
