// The resources that this process holds at the moment.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "tests/support/eventually.h"

namespace lookout::test {

inline std::size_t entries_of(const char* directory) {
  const std::filesystem::directory_iterator entries(directory);
  return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

inline std::size_t thread_count() { return entries_of("/proc/self/task"); }
inline std::size_t open_descriptors() { return entries_of("/proc/self/fd"); }

/// The threads and descriptors that there were when it was made.
class ResourceMark {
 public:
  std::size_t threads() const { return threads_; }

  /// Waits until there are as many again; fails the test if that takes too long.
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
