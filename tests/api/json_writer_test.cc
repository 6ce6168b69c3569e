#include "lookout/api/detail/json_writer.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <random>
#include <string>

#include "lookout/api/detail/flat_writer.h"
#include "lookout/api/object.h"

namespace lookout::api {
namespace {

Object with_number(double number) {
  detail::FlatWriter writer;
  writer.begin_object();
  writer.key("v");
  writer.real(number);
  writer.end_object();
  return writer.finish();
}

TEST(JsonWriterTest, EveryDoubleComesBackAsTheSameBits) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200000; ++i) {
    double number = std::bit_cast<double>(random());
    if (!std::isfinite(number)) continue;
    if (i % 2 == 0)
      number = std::trunc(std::ldexp(1.0 + number / 1e308, static_cast<int>(random() % 80)));
    const Object object = with_number(number);
    ASSERT_EQ(Object::parse(object.to_json()), object) << object.to_json();
  }
}

TEST(JsonWriterTest, AppendsToWhatIsThere) {
  std::string out = "x";
  const Object object = Object::parse(R"({"a":[]})");
  detail::write_json(object.body(), out);
  detail::write_pretty_json(object.body(), 1, out);
  EXPECT_EQ(out, "x{\"a\":[]}{\n \"a\": []\n}");
}

}  // namespace
}  // namespace lookout::api
