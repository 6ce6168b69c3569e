#include "lookout/base/file_reader.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <system_error>

#include "lookout/base/pinned.h"

namespace lookout {
namespace {

class Descriptor : public base::Pinned {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }

  int get() const { return fd_; }

 private:
  int fd_;
};

std::int64_t nanoseconds(const timespec& time) {
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

FileStamp stamp_from(const struct stat& info) {
  return {.device = info.st_dev,
          .inode = info.st_ino,
          .size = info.st_size,
          .modified_ns = nanoseconds(info.st_mtim),
          .changed_ns = nanoseconds(info.st_ctim)};
}

FileContent refused(int code) {
  FileContent out;
  out.error_code = code;
  out.error = std::generic_category().message(code);
  return out;
}

FileContent refused(std::string why) {
  FileContent out;
  out.error = std::move(why);
  return out;
}

}  // namespace

FileContent read_small_file(const std::string& path, FileKind kind) {
  // Without O_NONBLOCK, opening a pipe waits for a writer.
  const int wait = kind == FileKind::kRegular ? O_NONBLOCK : 0;
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | wait));
  if (file.get() < 0) return refused(errno);
  struct stat info {};
  if (::fstat(file.get(), &info) != 0) return refused(errno);
  if (S_ISDIR(info.st_mode)) return refused(EISDIR);
  if (kind == FileKind::kRegular && !S_ISREG(info.st_mode)) return refused("not a regular file");

  FileContent out;
  out.stamp = stamp_from(info);
  std::array<char, 16384> buffer;
  while (true) {
    const ssize_t n = ::read(file.get(), buffer.data(), buffer.size());
    if (n < 0 && errno == EINTR) continue;
    if (n < 0) return refused(errno);
    if (n == 0) return out;
    if (out.text.size() + static_cast<std::size_t>(n) > kMaxFileBytes) {
      return refused(fmt::format("larger than {} bytes", kMaxFileBytes));
    }
    out.text.append(buffer.data(), static_cast<std::size_t>(n));
  }
}

std::optional<FileStamp> stamp_of(const std::string& path) {
  struct stat info {};
  if (::stat(path.c_str(), &info) != 0) return std::nullopt;
  return stamp_from(info);
}

}  // namespace lookout
