// Holding up a thread of the code under test.
#pragma once

#include <gtest/gtest.h>

#include "tests/support/gate.h"

namespace lookout::test {

/// A point at which a thread waits until the test lets it go on.
class HoldUp {
 public:
  /// For the thread: says that it is here, and waits.
  void pass() {
    reached_.open();
    EXPECT_TRUE(free_.wait());
  }

  /// Waits until a thread is here; false after a minute.
  [[nodiscard]] bool reached() { return reached_.wait(); }
  void release() { free_.open(); }
  bool is_released() const { return free_.is_open(); }

 private:
  Gate reached_;
  Gate free_;
};

}  // namespace lookout::test
