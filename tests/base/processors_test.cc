#include "lookout/base/processors.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "tests/support/files.h"

namespace lookout {
namespace {

constexpr const char* kMountV2 =
    "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";

/// A folder with a container's view of /proc and cgroups.
class ProcessorsTest : public testing::Test {
 protected:
  void put(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_.path() / path;
    std::filesystem::create_directories(file.parent_path());
    test::write_file(file, text);
  }
  /// The process is in this group of cgroups v2.
  void in_group(const std::string& path) {
    put("proc/self/cgroup", "0::" + path + "\n");
    put("proc/self/mountinfo", kMountV2);
  }
  unsigned usable() const { return usable_processors(root_.path()); }
  /// The same after the quota and the period of cgroups v2 have changed: "20000 100000".
  unsigned usable_with(const std::string& quota) {
    put("sys/fs/cgroup/cpu.max", quota + "\n");
    return usable();
  }

  /// The quotas exceed the machine's processors by a half, so that the tests also work with one processor.
  const unsigned all_ = std::max(1u, std::thread::hardware_concurrency());
  const test::TempDir root_;
};

TEST_F(ProcessorsTest, WithoutAQuotaCountsAllProcessors) {
  EXPECT_EQ(usable(), all_);
  in_group("/");
  EXPECT_EQ(usable(), all_);
  EXPECT_EQ(usable_with("max 100000"), all_);
}

TEST_F(ProcessorsTest, RoundsTheQuotaOfAContainerUp) {
  in_group("/");
  EXPECT_EQ(usable_with("20000 100000"), 1u);
  EXPECT_EQ(usable_with(std::to_string(all_ * 100000 - 50000) + " 100000"), all_);
  EXPECT_EQ(usable_with("100000000 100000"), all_);
}

TEST_F(ProcessorsTest, AppliesQuotasOfParentGroups) {
  in_group("/kubepods/burstable/pod1");
  put("sys/fs/cgroup/kubepods/burstable/pod1/cpu.max", "max 100000\n");
  put("sys/fs/cgroup/kubepods/cpu.max", "100000 100000\n");
  EXPECT_EQ(usable(), 1u);
}

TEST_F(ProcessorsTest, SupportsCgroupsV1) {
  put("proc/self/cgroup", "5:cpuset:/x\n3:cpu,cpuacct:/docker/4711\n1:name=systemd:/\n");
  put("proc/self/mountinfo",
      "40 30 0:34 /docker/4711 /sys/fs/cgroup/cpuset ro - cgroup cgroup rw,cpuset\n"
      "41 30 0:35 /docker/4711 /sys/fs/cgroup/cpu,cpuacct ro master:9 - cgroup cgroup "
      "rw,cpu,cpuacct\n");
  put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
  put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
  EXPECT_EQ(usable(), all_);
  put("sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "90000\n");
  EXPECT_EQ(usable(), 1u);
}

TEST_F(ProcessorsTest, IgnoresMalformedQuotas) {
  put("proc/self/cgroup", "what\n0::/\n");
  put("proc/self/mountinfo", std::string("- - -\n\n") + kMountV2);
  for (const char* text : {"", "0 0\n", "1\n", "-5 100000\n", "a b\n"}) {
    put("sys/fs/cgroup/cpu.max", text);
    EXPECT_EQ(usable(), all_) << text;
  }
}

}  // namespace
}  // namespace lookout
