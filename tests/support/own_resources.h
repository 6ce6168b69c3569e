// The resources that this process holds.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

#include "tests/support/eventually.h"

namespace lookout::test {

inline std::size_t entries_of(const char* directory) {
  const std::filesystem::directory_iterator entries(directory);
  return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

inline std::size_t open_descriptors() { return entries_of("/proc/self/fd"); }

/// The number of running threads. The kernel lists a thread for a moment after it has been joined,
/// with the flag PF_EXITING; such threads do not count.
inline std::size_t thread_count() {
  constexpr unsigned long kExiting = 0x4;
  std::size_t count = 0;
  for (const auto& thread : std::filesystem::directory_iterator("/proc/self/task")) {
    // "tid (name) state ppid pgrp session tty tpgid flags ..."; a name may contain any character.
    std::ifstream stat(thread.path() / "stat");
    std::string text(std::istreambuf_iterator<char>(stat), {});
    std::istringstream fields(text.substr(text.rfind(')') + 1));
    std::string skipped;
    for (int i = 0; i < 6; ++i) fields >> skipped;
    unsigned long flags = kExiting;
    fields >> flags;
    if (fields && (flags & kExiting) == 0) ++count;
  }
  return count;
}

/// The numbers of threads and descriptors at its construction.
class ResourceMark {
 public:
  std::size_t threads() const { return threads_; }

  /// Waits until the numbers are the same again; fails the test after a time.
  void expect_return() const {
    EXPECT_TRUE(eventually([&] { return thread_count() == threads_; }))
        << thread_count() << " threads, not " << threads_;
    EXPECT_TRUE(eventually([&] { return open_descriptors() == descriptors_; }))
        << open_descriptors() << " descriptors, not " << descriptors_;
  }

 private:
  const std::size_t threads_ = thread_count();
  const std::size_t descriptors_ = open_descriptors();
};

/// Bytes of memory that are in use (the resident set).
inline std::size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t total = 0;
  std::size_t resident = 0;
  file >> total >> resident;
  return resident * static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
}

}  // namespace lookout::test
