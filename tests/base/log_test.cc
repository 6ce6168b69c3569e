#include "lookout/base/detail/log.h"

#include <gtest/gtest.h>
#include <spdlog/sinks/base_sink.h>
#include <spdlog/spdlog.h>

#include <memory>
#include <mutex>

namespace lookout {
namespace {

/// Throws something that spdlog passes on.
class BrokenSink : public spdlog::sinks::base_sink<std::mutex> {
 public:
  int lines = 0;

 private:
  void sink_it_(const spdlog::details::log_msg&) override {
    ++lines;
    throw 7;
  }
  void flush_() override {}
};

TEST(LogTest, ASinkMayThrow) {
  const auto sink = std::make_shared<BrokenSink>();
  spdlog::default_logger()->sinks().push_back(sink);
  EXPECT_NO_THROW(log::error("a line for a sink that throws"));
  spdlog::default_logger()->sinks().pop_back();
  EXPECT_EQ(sink->lines, 1);
}

}  // namespace
}  // namespace lookout
