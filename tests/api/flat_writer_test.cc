#include "lookout/api/detail/flat_writer.h"

#include <gtest/gtest.h>

#include <string>

#include "lookout/api/object.h"
#include "tests/support/held.h"

namespace lookout::api::detail {
namespace {

TEST(FlatWriterTest, FreesTheBufferOfAHugeObject) {
  FlatWriter writer;
  const auto write = [&](std::size_t bytes) {
    writer.begin_object();
    writer.key("a");
    writer.string(std::string(bytes, 'x'));
    writer.end_object();
  };
  write(1000);
  writer.finish();
  const std::size_t usual = writer.capacity();
  EXPECT_GT(usual, 1000u) << "what is usual is kept";
  write(std::size_t{20} << 20);
  EXPECT_EQ(lookout::test::held(writer.finish())["a"].as_string().size(), std::size_t{20} << 20);
  EXPECT_LE(writer.capacity(), std::size_t{1} << 20);
  write(std::size_t{20} << 20);
  writer.clear();
  EXPECT_LE(writer.capacity(), std::size_t{1} << 20) << "of one that was given up";
}

}  // namespace
}  // namespace lookout::api::detail
