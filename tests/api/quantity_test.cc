#include "lookout/api/quantity.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <limits>
#include <optional>
#include <string>

namespace lookout::api {
namespace {

constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
using Format = Quantity::Format;

Quantity quantity(std::string_view text) {
  const auto parsed = Quantity::parse(text);
  EXPECT_TRUE(parsed) << text;
  return parsed.value_or(Quantity());
}

// The results of k8s.io/apimachinery/pkg/api/resource for the same texts.
TEST(QuantityTest, ParsesRoundsAndPrintsLikeKubernetes) {
  const struct {
    const char* text;
    const char* canonical;
    Format format;
    std::int64_t value;
    std::int64_t milli_value;
  } cases[] = {
      {"0", "0", Format::kDecimalSI, 0, 0},
      {"-0", "0", Format::kDecimalSI, 0, 0},
      {"0Ki", "0", Format::kBinarySI, 0, 0},
      {"1", "1", Format::kDecimalSI, 1, 1000},
      {"+1", "1", Format::kDecimalSI, 1, 1000},
      {"-1", "-1", Format::kDecimalSI, -1, -1000},
      {"007", "7", Format::kDecimalSI, 7, 7000},
      {"1.", "1", Format::kDecimalSI, 1, 1000},
      {".5", "500m", Format::kDecimalSI, 1, 500},
      {"0.5", "500m", Format::kDecimalSI, 1, 500},
      {"1.5", "1500m", Format::kDecimalSI, 2, 1500},
      {"-1.5", "-1500m", Format::kDecimalSI, -2, -1500},
      {"500m", "500m", Format::kDecimalSI, 1, 500},
      {"1000m", "1", Format::kDecimalSI, 1, 1000},
      {"1001m", "1001m", Format::kDecimalSI, 2, 1001},
      {"100u", "100u", Format::kDecimalSI, 1, 1},
      {"1n", "1n", Format::kDecimalSI, 1, 1},
      {"1000n", "1u", Format::kDecimalSI, 1, 1},
      {"0.1n", "1n", Format::kDecimalSI, 1, 1},
      {"-0.1n", "-1n", Format::kDecimalSI, -1, -1},
      {"1.0000000001", "1000000001n", Format::kDecimalSI, 2, 1001},
      {"0.0000000000000000000001", "1n", Format::kDecimalSI, 1, 1},
      {"1k", "1k", Format::kDecimalSI, 1000, 1000000},
      {"1000k", "1M", Format::kDecimalSI, 1000000, 1000000000},
      {"1500k", "1500k", Format::kDecimalSI, 1500000, 1500000000},
      {"12345678", "12345678", Format::kDecimalSI, 12345678, 12345678000},
      {"1E", "1E", Format::kDecimalSI, 1000000000000000000, kMax},
      {"9223372036854775807", "9223372036854775807", Format::kDecimalSI, kMax, kMax},
      {"1Ki", "1Ki", Format::kBinarySI, 1024, 1024000},
      {"1024Ki", "1Mi", Format::kBinarySI, 1048576, 1048576000},
      {"1.5Gi", "1536Mi", Format::kBinarySI, 1610612736, 1610612736000},
      {"0.5Ki", "512", Format::kBinarySI, 512, 512000},
      {"1.1Ki", "1126400m", Format::kBinarySI, 1127, 1126400},
      {"1100Ki", "1100Ki", Format::kBinarySI, 1126400, 1126400000},
      {"0.0001Ki", "102400u", Format::kDecimalSI, 1, 103},
      {"1Ei", "1Ei", Format::kBinarySI, 1152921504606846976, kMax},
      {"7Ei", "7Ei", Format::kBinarySI, 8070450532247928832, kMax},
      {"8Ei", "9223372036854775807", Format::kBinarySI, kMax, kMax},
      {"-8Ei", "-9223372036854775807", Format::kBinarySI, -kMax, -kMax},
      {"100000000000000000000000Ki", "9223372036854775807", Format::kBinarySI, kMax, kMax},
      {"1e3", "1e3", Format::kDecimalExponent, 1000, 1000000},
      {"1E3", "1e3", Format::kDecimalExponent, 1000, 1000000},
      {"1e+3", "1e3", Format::kDecimalExponent, 1000, 1000000},
      {"1e-3", "1e-3", Format::kDecimalExponent, 1, 1},
      {"1e-1", "100e-3", Format::kDecimalExponent, 1, 100},
      {"1e2", "100", Format::kDecimalExponent, 100, 100000},
      {"15e-1", "1500e-3", Format::kDecimalExponent, 2, 1500},
      {"1.5e3", "1500", Format::kDecimalExponent, 1500, 1500000},
      {"1e0", "1", Format::kDecimalExponent, 1, 1000},
      {"1e21", "1e21", Format::kDecimalExponent, kMax, kMax},
      {"1e-100", "1e-9", Format::kDecimalExponent, 1, 1},
      // Digits are optional.
      {".", "0", Format::kDecimalSI, 0, 0},
      {"-", "0", Format::kDecimalSI, 0, 0},
      {"m", "0", Format::kDecimalSI, 0, 0},
      {"Ki", "0", Format::kBinarySI, 0, 0},
      {"e5", "0", Format::kDecimalExponent, 0, 0},
  };
  for (const auto& [text, canonical, format, value, milli_value] : cases) {
    SCOPED_TRACE(text);
    const Quantity q = quantity(text);
    EXPECT_EQ(q.to_string(), canonical);
    EXPECT_EQ(q.format(), format);
    EXPECT_EQ(q.value(), value);
    EXPECT_EQ(q.milli_value(), milli_value);
    EXPECT_EQ(q.is_zero(), value == 0);
    EXPECT_EQ(quantity(canonical), q);
    EXPECT_EQ(quantity(canonical).to_string(), canonical);
  }
}

TEST(QuantityTest, RejectsTheSameTextsAsKubernetes) {
  for (const char* text : {"",      " ",     "1 ",    " 1",    "a",
                           "1a",    "1K",    "1mi",   "1ki",   "1i",
                           "1KiB",  "1Kii",  "1 Ki",  "1e",    "1eE",
                           "1e5m",  "1e1.5", "1e--5", "1e+-5", "1e99999999999999999999",
                           "1.2.3", "..",    "--1",   "+-1",   "1-",
                           "1,5",   "0x10",  "1_000", "NaN",   "inf",
                           "Pi",    "Ei",    "e-10",  "1mm",   "\xFF",
                           "10\n"}) {
    EXPECT_EQ(Quantity::parse(text), std::nullopt) << text;
  }
  EXPECT_EQ(Quantity::parse(std::string_view("1\0", 2)), std::nullopt);
}

TEST(QuantityTest, AmountsBeyondTheRangeAreClamped) {
  const Quantity huge = quantity("1e28");
  EXPECT_EQ(quantity("1e29"), huge);
  EXPECT_EQ(quantity("1e1000000000"), huge);
  EXPECT_EQ(quantity("1e9223372036854775807"), huge);
  EXPECT_EQ(quantity(std::string(1000, '9')), huge);
  EXPECT_EQ(quantity("-" + std::string(1000, '9')), quantity("-1e28"));
  EXPECT_EQ(quantity(std::string(1000, '9') + "Ki"), quantity("9223372036854775807"));
  EXPECT_EQ(quantity("1e-9223372036854775807"), quantity("1n"));
  EXPECT_EQ(quantity("0e1000000000").value(), 0);
  EXPECT_LT(quantity("1e27"), huge);
  EXPECT_EQ(huge + huge, huge);
  EXPECT_EQ(quantity("-1e28") - huge, quantity("-1e28"));
}

TEST(QuantityTest, ComparesByAmount) {
  const char* ascending[] = {"-1e28", "-1Gi", "-1",  "-1m",      "0",   "1n",   "1u",
                             "1m",    "0.5",  "1",   "1000001u", "1k",  "1Ki",  "1M",
                             "1Mi",   "1G",   "1Gi", "1E",       "1Ei", "1e20", "1e28"};
  for (std::size_t i = 0; i < std::size(ascending); ++i) {
    for (std::size_t j = 0; j < std::size(ascending); ++j) {
      EXPECT_EQ(quantity(ascending[i]) <=> quantity(ascending[j]), i <=> j)
          << ascending[i] << " " << ascending[j];
    }
  }
  for (const auto& [a, b] :
       {std::pair("1", "1000m"), std::pair("1Ki", "1024"), std::pair("1k", "1e3"),
        std::pair("0", "0Ki"), std::pair("0.5Gi", "512Mi")}) {
    EXPECT_EQ(quantity(a), quantity(b)) << a;
  }
}

TEST(QuantityTest, AddsAndSubtracts) {
  EXPECT_EQ((quantity("500m") + quantity("1")).to_string(), "1500m");
  EXPECT_EQ((quantity("1Gi") + quantity("512Mi")).to_string(), "1536Mi");
  EXPECT_EQ((quantity("1Gi") - quantity("1Gi")).to_string(), "0");
  EXPECT_EQ((quantity("1") - quantity("1500m")).to_string(), "-500m");
  // The format is that of the first quantity that is not zero.
  EXPECT_EQ((Quantity() + quantity("1Gi")).to_string(), "1Gi");
  EXPECT_EQ((quantity("1Gi") + quantity("1G")).format(), Format::kBinarySI);
  EXPECT_EQ((Quantity() - quantity("1Gi")).to_string(), "-1Gi");
}

TEST(QuantityTest, ConvertsFromNumbers) {
  EXPECT_EQ(Quantity::of(3).to_string(), "3");
  EXPECT_EQ(Quantity::of(2048, Format::kBinarySI).to_string(), "2Ki");
  EXPECT_EQ(Quantity::of_milli(1500).to_string(), "1500m");
  EXPECT_EQ(Quantity::of(std::numeric_limits<std::int64_t>::min()).value(),
            -std::numeric_limits<std::int64_t>::max());
  Quantity sum;
  sum += Quantity::of_milli(500);
  sum += quantity("1");
  EXPECT_EQ(sum.to_string(), "1500m");
  sum -= Quantity::of(1);
  EXPECT_EQ(sum.to_string(), "500m");
}

TEST(QuantityTest, ConvertsToADouble) {
  EXPECT_DOUBLE_EQ(quantity("1500m").as_double(), 1.5);
  EXPECT_DOUBLE_EQ(quantity("-1Ki").as_double(), -1024);
  EXPECT_DOUBLE_EQ(quantity("1e20").as_double(), 1e20);
  EXPECT_DOUBLE_EQ(Quantity().as_double(), 0);
}

}  // namespace
}  // namespace lookout::api
