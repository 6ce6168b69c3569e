#include "cmd/closest.h"

#include <gtest/gtest.h>

namespace lookout::cmd {
namespace {

const std::vector<std::string> kKnown = {"pods",   "pod",        "po", "deployments",
                                         "deploy", "configmaps", "cm", "services",
                                         "svc",    "nodes",      "no", "endpoints"};

struct Case {
  std::string word;
  std::string meant;
};
class Closest : public testing::TestWithParam<Case> {};

TEST_P(Closest, IsTheIntendedWord) {
  EXPECT_EQ(closest(GetParam().word, kKnown), GetParam().meant);
}

INSTANTIATE_TEST_SUITE_P(Cmd, Closest,
                         testing::Values(Case{"podz", "pods"}, Case{"pdos", "pods"},
                                         Case{"PODS", "pods"}, Case{"deploymnet", "deployments"},
                                         Case{"confgmaps", "configmaps"},
                                         Case{"service", "services"}, Case{"edpoints", "endpoints"},
                                         Case{"unicorns", ""}, Case{"ab", ""}, Case{"", ""},
                                         Case{std::string(100'000, 'p'), ""}));

TEST(ClosestOfNothing, IsNothing) { EXPECT_EQ(closest("pods", {}), ""); }

}  // namespace
}  // namespace lookout::cmd
