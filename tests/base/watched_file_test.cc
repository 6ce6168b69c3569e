// Files that change while they are watched.
#include "lookout/base/watched_file.h"

#include <gtest/gtest.h>

#include <chrono>
#include <filesystem>

#include "tests/support/files.h"

namespace lookout {
namespace {

using namespace std::chrono_literals;
namespace fs = std::filesystem;

// The kubelet updates mounted volumes like this: FILE -> ..data/FILE, ..data -> a folder.
TEST(WatchedFileTest, SeesAReplacedLink) {
  const test::TempDir folder;
  const fs::path root = folder.path();
  for (const char* version : {"1", "2"}) {
    fs::create_directory(root / version);
    test::write_file(root / version / "token", version);
  }
  fs::create_directory_symlink("1", root / "..data");
  fs::create_symlink("..data/token", root / "token");
  WatchedFile file((root / "token").string());
  WatchedFile::Time now{1h};
  EXPECT_TRUE(file.poll(now));
  EXPECT_EQ(file.text(), "1");
  fs::create_directory_symlink("2", root / "..new");
  fs::rename(root / "..new", root / "..data");
  EXPECT_TRUE(file.poll(now += 1s));
  EXPECT_EQ(file.text(), "2");
}

TEST(WatchedFileTest, RecoversWhenTheSameFileReturns) {
  const test::TempDir folder;
  const fs::path root = folder.path();
  test::write_file(root / "target", "text");
  fs::create_symlink("target", root / "link");
  WatchedFile file((root / "link").string());
  WatchedFile::Time now{1h};
  EXPECT_TRUE(file.poll(now));
  fs::remove(root / "link");
  EXPECT_FALSE(file.poll(now += 1s));
  EXPECT_NE(file.error(), "");
  EXPECT_EQ(file.text(), "text");
  fs::create_symlink("target", root / "link");
  EXPECT_FALSE(file.poll(now += 1s));
  EXPECT_EQ(file.error(), "");
}

}  // namespace
}  // namespace lookout
