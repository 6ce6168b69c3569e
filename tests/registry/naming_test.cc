// A service as a list of servers, passed to a function.
#include "lookout/registry/clients/naming.h"

#include <gtest/gtest.h>

#include <stdexcept>
#include <vector>

#include "tests/registry/fixed_discovery.h"
#include "tests/support/matchers.h"

namespace lookout::registry {
namespace {

using test::FixedDiscovery;
using Servers = std::vector<NamedServer>;

class NamingTest : public testing::Test {
 protected:
  NamingService follow(NamingOptions options = {}) {
    return {discovery_, "web", [this](const Servers& servers) { lists_.push_back(servers); },
            std::move(options)};
  }

  FixedDiscovery discovery_;
  std::vector<Servers> lists_;
};

TEST_F(NamingTest, PassesOnEachList) {
  const NamingService naming = follow({.scheme = "grpc"});
  ASSERT_EQ(lists_.size(), 1u);
  EXPECT_TRUE(lists_[0].empty());
  const ServiceInstance one{.id = "a",
                            .metadata = {{"weight", "50"}},
                            .endpoints = {"http://10.0.0.2:80", "grpc://10.0.0.2:90"}};
  const ServiceInstance two{.id = "b", .endpoints = {"grpc://[fd00::1]:90"}};
  discovery_.publish({one, two});
  ASSERT_EQ(lists_.size(), 2u);
  EXPECT_EQ(lists_[1], (Servers{{"10.0.0.2:90", "50"}, {"[fd00::1]:90", ""}}));

  // A set with the same servers is not passed on.
  ServiceInstance renamed = one;
  renamed.version = "v2";
  discovery_.publish({renamed, two});
  EXPECT_EQ(lists_.size(), 2u);

  discovery_.publish({two});
  EXPECT_EQ(lists_.back(), (Servers{{"[fd00::1]:90", ""}}));
}

TEST_F(NamingTest, OmitsUnusableInstances) {
  const NamingService naming = follow({.scheme = "grpc", .tag_key = "zone"});
  ServiceInstance unready{.id = "a", .endpoints = {"grpc://10.0.0.1:90"}};
  unready.ready = false;
  discovery_.publish(
      {unready,
       {.id = "b", .endpoints = {"http://10.0.0.2:80"}},
       {.id = "c", .metadata = {{"zone", "sh"}}, .endpoints = {"grpc://10.0.0.3:90"}},
       {.id = "d", .endpoints = {"grpc://10.0.0.3:90"}}});
  EXPECT_EQ(lists_.back(), (Servers{{"10.0.0.3:90", "sh"}})) << "each address once";
}

TEST_F(NamingTest, AListWhoseCallThrewIsPassedOnAgain) {
  int calls = 0;
  const NamingService naming(discovery_, "web", [&](const Servers&) {
    if (++calls == 2) throw std::runtime_error("no connection");
  });
  EXPECT_THROW(discovery_.publish({{.id = "a"}}), std::runtime_error);
  discovery_.publish({{.id = "a"}, {.id = "b"}});
  EXPECT_EQ(calls, 3);
}

TEST_F(NamingTest, EndsWithItsObject) {
  { const NamingService naming = follow(); }
  discovery_.publish({{.id = "a"}});
  EXPECT_EQ(lists_.size(), 1u);
}

}  // namespace
}  // namespace lookout::registry
