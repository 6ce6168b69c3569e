#include "apiserver/resources/ip_address.h"

#include <gtest/gtest.h>

#include <string>

namespace lookout::apiserver::resources {
namespace {

std::string canonical(const char* text) {
  const auto address = IpAddress::parse(text);
  return address ? address->to_string() : "none";
}

TEST(IpAddress, HasOneCanonicalForm) {
  EXPECT_EQ(canonical("10.9.8.7"), "10.9.8.7");
  EXPECT_EQ(canonical("2001:0DB8:0:0::1"), "2001:db8::1");
  for (const char* none : {"", "10.9.8", "10.9.8.256", "010.9.8.7", "1:2", " ::1", "::1%eth0"})
    EXPECT_EQ(canonical(none), "none") << none;
}

TEST(IpAddress, RecognisesIpv4InsideIpv6) {
  EXPECT_TRUE(IpAddress::parse("::ffff:1.2.3.4")->is_mapped());
  EXPECT_FALSE(IpAddress::parse("::1.2.3.4")->is_mapped());
  EXPECT_FALSE(IpAddress::parse("1.2.3.4")->is_mapped());
}

TEST(IpRange, HasAnAddressAndALength) {
  for (const char* none : {"10.0.0.0", "10.0.0.0/", "10.0.0.0/33", "10.0.0.0/-1", "10.0.0.0/+8",
                           "/8", "::/129", "10.0.0.0/8/8"})
    EXPECT_FALSE(IpRange::parse(none)) << none;
  EXPECT_EQ(IpRange::parse("2001:0db8::/32")->to_string(), "2001:db8::/32");
  EXPECT_EQ(IpRange::parse("0.0.0.0/0")->length, 0u);
}

TEST(IpRange, ContainsAddressesWithItsPrefix) {
  const auto expect_border = [](const char* text, const char* inside, const char* outside) {
    const auto range = IpRange::parse(text);
    EXPECT_TRUE(range->contains(*IpAddress::parse(inside))) << text;
    EXPECT_FALSE(range->contains(*IpAddress::parse(outside))) << text;
  };
  expect_border("10.0.0.0/9", "10.127.255.255", "10.128.0.0");
  expect_border("0.0.0.0/0", "255.1.1.1", "::1");
  expect_border("fe80::/10", "febf::1", "fec0::1");
}

TEST(LeadingZeros, AreRemovedFromNumbers) {
  EXPECT_EQ(without_leading_zeros("010.0.00.08/08"), "10.0.0.8/8");
  EXPECT_EQ(without_leading_zeros("10.20.100.0/0"), "10.20.100.0/0");
}

}  // namespace
}  // namespace lookout::apiserver::resources
