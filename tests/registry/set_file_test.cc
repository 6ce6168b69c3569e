#include "lookout/registry/set_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <filesystem>
#include <iterator>
#include <string>
#include <thread>

#include "lookout/registry/balancer.h"
#include "tests/registry/fixed_discovery.h"
#include "tests/support/files.h"
#include "tests/support/matchers.h"

namespace lookout::registry {
namespace {

using test::FixedDiscovery;
using test::numbered;

class SetFileTest : public testing::Test {
 protected:
  void write(const std::string& text) const { lookout::test::write_file(path_, text); }

  const std::filesystem::path dir_ =
      std::filesystem::path(testing::TempDir()) /
      ("set_file_" + std::to_string(::getpid()) + "_" +
       testing::UnitTest::GetInstance()->current_test_info()->name());
  const std::string path_ = (dir_ / "web.json").string();
  FixedDiscovery discovery_;

  SetFileTest() { std::filesystem::create_directories(dir_); }
  ~SetFileTest() override { std::filesystem::remove_all(dir_); }
};

TEST_F(SetFileTest, RestoresTheLastSet) {
  ServiceInstance instance{.id = "1",
                           .name = "web",
                           .version = "v1",
                           .metadata = {{"note", "\"<a>\"\n"}},
                           .endpoints = {"http://h:1", "http://h:2"},
                           .origin = "shop/web-1",
                           .zone = "sh001"};
  instance.endpoints[1].set_announced(false);
  {
    const SetFile file(discovery_, "web", path_);
    discovery_.publish_as_they_are({instance});
    discovery_.publish_as_they_are({});  // not written, nor the next one
    discovery_.publish_as_they_are({{.id = "2", .ready = false}});
  }
  const auto set = read_set_file(path_, "web");
  ASSERT_TRUE(set);
  ASSERT_EQ(set->size(), 1u);
  EXPECT_TRUE(identical((*set)[0], instance));
  EXPECT_FALSE(set->freshness().live);
  EXPECT_LE(std::chrono::system_clock::now() - set->freshness().since, std::chrono::minutes(10));
  EXPECT_THAT(set->freshness().error, HasSubstr(path_));
  // No other files remain.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(dir_), {}), 1);
}

TEST_F(SetFileTest, ABalancerStartsWithIt) {
  discovery_.publish(numbered(2));
  const auto policy = round_robin().cold_start_from(path_).with_seed(0);
  { const Balancer before(discovery_, "web", policy); }
  FixedDiscovery silent;
  const Balancer balancer(silent, "web", policy);
  ASSERT_TRUE(balancer.pick());
  EXPECT_EQ(balancer.pick().endpoint().host(), "host-2");
  EXPECT_FALSE(balancer.freshness().live);
  // The first data replaces it, even an empty set.
  silent.publish({});
  EXPECT_FALSE(balancer.pick());
  EXPECT_TRUE(balancer.freshness().live);
}

TEST_F(SetFileTest, AnInvalidFileIsIgnored) {
  EXPECT_FALSE(read_set_file(path_, "web")) << "there is none";
  for (const char* text :
       {"", "{", "[]", "{}", R"({"format":2,"service":"web","written":1,"instances":[]})",
        R"({"format":1,"service":"other","written":1,"instances":[]})",
        R"({"format":1,"service":"web","instances":[]})",
        R"({"format":1,"service":"web","written":-1,"instances":[]})",
        R"({"format":1,"service":"web","written":9223372036854775807,"instances":[]})",
        R"({"format":1,"service":"web","written":1,"instances":[7]})",
        R"({"format":1,"service":"web","written":1,"instances":{}})"}) {
    write(text);
    EXPECT_FALSE(read_set_file(path_, "web")) << text;
  }
  write(std::string(200'000, '['));
  EXPECT_FALSE(read_set_file(path_, "web"));
  EXPECT_FALSE(read_set_file(dir_.string(), "web"));
}

TEST_F(SetFileTest, SeveralMayWriteTheSameFile) {
  discovery_.publish(numbered(200));
  const auto set = discovery_.latest("web");
  const auto write_often = [&] {
    for (int i = 0; i < 30; ++i) EXPECT_NO_THROW(write_set_file(path_, *set));
  };
  {
    const std::jthread one(write_often);
    const std::jthread other(write_often);
  }
  const auto read = read_set_file(path_, "web");
  ASSERT_NE(read, nullptr);
  EXPECT_EQ(read->size(), 200u);
  const std::filesystem::directory_iterator files(dir_);
  EXPECT_EQ(std::distance(begin(files), end(files)), 1) << "nothing else is left behind";
}

TEST_F(SetFileTest, AMissingFolderIsAnError) {
  EXPECT_THROW(write_set_file((dir_ / "no" / "web.json").string(), *discovery_.latest("web")),
               Error);
}

}  // namespace
}  // namespace lookout::registry
