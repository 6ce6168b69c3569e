// A function that runs in a process of its own.
#pragma once

#include <atomic>
#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace lookout::sim {

/// Forks, runs the function in the child, and waits for its end. Nothing that the child does is
/// seen here but what the function returns. There must be no other threads in this process: the
/// child would find their locks locked.
class ForkedCall {
 public:
  explicit ForkedCall(const std::function<std::string()>& function);

  /// Nothing if the function has returned: else "the world was ended by signal 6 (Aborted)".
  const std::optional<std::string>& why_it_died() const { return why_; }
  const std::string& result() const { return result_; }

 private:
  std::string result_;
  std::optional<std::string> why_;
};

/// Text that a process and those forked from it share: what a child has added is there when it has
/// died.
class SharedText {
 public:
  /// Throws std::system_error if there is no memory.
  SharedText();
  ~SharedText();
  SharedText(const SharedText&) = delete;
  SharedText& operator=(const SharedText&) = delete;

  /// Does nothing if the text has become too long.
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
