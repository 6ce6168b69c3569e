// Reads and writes files for tests.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/base/pinned.h"

namespace lookout::test {

/// The whole file; fails the test if it cannot be read.
std::string read_file(const std::filesystem::path& path);
void write_file(const std::filesystem::path& path, std::string_view text);

/// A file or folder below tests/testdata.
std::filesystem::path testdata(const std::filesystem::path& name);

/// The lines of a text, without their ends.
std::vector<std::string> lines(std::string_view text);

/// A temporary folder for one test, removed with its content.
class TempDir : public base::Pinned {
 public:
  explicit TempDir(const std::filesystem::path& parent = std::filesystem::temp_directory_path());
  ~TempDir();

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path operator/(std::string_view name) const { return path_ / name; }
  /// Writes a file, and returns its path.
  std::string file(std::string_view name, std::string_view text) const;

 private:
  std::filesystem::path path_;
};

}  // namespace lookout::test
