// Addresses that count as one client.
#include <gtest/gtest.h>

#include "lookout/base/http/server.h"

namespace lookout::http {
namespace {

TEST(CountedAddress, IsTheNetworkOfAnIpv6Address) {
  EXPECT_EQ(counted_address("192.0.2.7"), "192.0.2.7");
  EXPECT_EQ(counted_address("::ffff:192.0.2.7"), "192.0.2.7");
  EXPECT_EQ(counted_address("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
  EXPECT_EQ(counted_address("2001:db8:1:2::9"), "2001:db8:1:2::/64");
  EXPECT_NE(counted_address("2001:db8:1:3::9"), "2001:db8:1:2::/64");
  EXPECT_EQ(counted_address("::1"), "::1");
  EXPECT_EQ(counted_address("simulated"), "simulated");
}

}  // namespace
}  // namespace lookout::http
