// Reads small configuration files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace lookout {

/// Certificates, keys, tokens and kubeconfigs are a few kilobytes; a larger file is something else.
inline constexpr std::size_t kMaxFileBytes = 4u << 20;

/// Detects changes of a file without reading it.
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
  int error_code = 0;  // errno of a failed system call
  std::string error;   // why reading failed, without the path; empty on success

  explicit operator bool() const { return error.empty(); }
};

enum class FileKind {
  kRegular,  // refuses everything else: reading a pipe or a device may block, and works only once
  kOrPipe,   // also accepts pipes, such as a shell's <(command)
};

FileContent read_small_file(const std::string& path, FileKind kind);

/// Empty if the file cannot be accessed.
std::optional<FileStamp> stamp_of(const std::string& path);

}  // namespace lookout
