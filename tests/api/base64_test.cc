#include "lookout/base/base64.h"

#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <string_view>

#include "tests/support/text_case.h"

namespace lookout::api {
namespace {

using namespace std::string_view_literals;

TEST(Base64Test, RoundTrips) {
  const lookout::test::TextViewCase cases[] = {
      {"", ""},
      {"f", "Zg=="},
      {"fo", "Zm8="},
      {"foo", "Zm9v"},
      {"foobar", "Zm9vYmFy"},
      {"\0\x01\x02\x03\x04\xFF"sv, "AAECAwT/"},
      {"\xFB\xEF\xBE", "++++"},
  };
  for (const auto& [bytes, text] : cases) {
    EXPECT_EQ(encode_base64(bytes), text);
    EXPECT_EQ(decode_base64(text), bytes) << text;
  }
  std::string all;
  for (int i = 0; i < 10000; ++i) all += static_cast<char>(i * 7);
  EXPECT_EQ(decode_base64(encode_base64(all)), all);
}

TEST(Base64Test, IgnoresLineBreaks) {
  EXPECT_EQ(decode_base64("Zm9v\r\nYmFy\n"), "foobar");
  EXPECT_EQ(decode_base64("\n"), "");
  EXPECT_EQ(decode_base64("Z\ng\n=\n="), "f");
}

TEST(Base64Test, RejectsInvalidText) {
  for (const auto text :
       {"Z", "Zg", "Zg=", "Zg===", "====", "=", "Z===", "Zg==Zg==", "Zm=v", "=m9v", "Zm9 ", " Zm9v",
        "Zm9v ", "Zm-v", "Zm_v", "Zm9v=", "Zm9v====", "Zm9\t", "Zg=g"}) {
    EXPECT_EQ(decode_base64(text), std::nullopt) << text;
  }
  EXPECT_EQ(decode_base64("Zm9\0"sv), std::nullopt);
  EXPECT_EQ(decode_base64("Zm9\xFF"sv), std::nullopt);
}

}  // namespace
}  // namespace lookout::api
