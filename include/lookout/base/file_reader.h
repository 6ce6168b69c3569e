// Reading the small files that a configuration names.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace lookout {

/// Certificates, keys, tokens and kubeconfigs are a few kilobytes; whatever is larger than this is
/// something else.
inline constexpr std::size_t kMaxFileBytes = 4u << 20;

/// Tells one state of a file from another without reading it.
struct FileStamp {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::int64_t size = 0;
  std::int64_t modified_ns = 0;
  std::int64_t changed_ns = 0;
  bool operator==(const FileStamp&) const = default;
};

struct FileContent {
  std::string text;
  FileStamp stamp;
  int error_code = 0;  // errno, where the system refused
  std::string error;   // why there is no text, without the path; empty if there is

  explicit operator bool() const { return error.empty(); }
};

enum class FileKind {
  kRegular,  // anything else is refused: a pipe or a device cannot be read again, and may block
  kOrPipe,   // also what a shell makes of <(command)
};

FileContent read_small_file(const std::string& path, FileKind kind);

/// Nothing if the file cannot be seen.
std::optional<FileStamp> stamp_of(const std::string& path);

}  // namespace lookout
