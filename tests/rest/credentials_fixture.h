// A fixture for tests of credentials.
#pragma once

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <string>
#include <string_view>

#include "lookout/api/time.h"
#include "lookout/rest/credentials.h"
#include "tests/support/files.h"

namespace lookout::rest {

// The names that tests of credentials use.
using namespace std::chrono_literals;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::ThrowsMessage;

/// A directory, and a clock that only the test advances.
class CredentialsTest : public ::testing::Test {
 protected:
  std::string path(std::string_view name) const { return (dir_ / name).string(); }

  CredentialsOptions options() {
    return {.now = [this] { return std::chrono::system_clock::time_point(now_.load()); }};
  }
  void pass(std::chrono::milliseconds time) { now_ = now_.load() + time; }
  std::string in(std::chrono::seconds time) const {
    return api::format_time(
        std::chrono::floor<std::chrono::microseconds>(std::chrono::sys_seconds(1'800'000'000s)) +
        time);
  }

  const test::TempDir dir_;
  std::atomic<std::chrono::system_clock::duration> now_{1'800'000'000s};
};

}  // namespace lookout::rest
