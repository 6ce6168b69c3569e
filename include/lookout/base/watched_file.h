// WatchedFile: follows the content of a file that may change at any time.
#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "lookout/base/file_reader.h"

namespace lookout {

/// Keeps the content of a file current: checks the file at most once a second, and reads it when it
/// has changed, but at least once a minute. If the file disappears, the last content remains. Not
/// thread-safe.
class WatchedFile {
 public:
  using Time = std::chrono::system_clock::time_point;

  explicit WatchedFile(std::string path) : path_(std::move(path)) {}

  const std::string& path() const { return path_; }
  /// The content that was read last; empty if the file has never been read.
  const std::optional<std::string>& text() const { return text_; }
  /// The error of the last attempt to read; empty if it succeeded.
  const std::string& error() const { return error_; }

  /// Returns true if text() has changed.
  bool poll(Time now) {
    if (checked_at_ && !passed(*checked_at_, now, std::chrono::seconds(1))) return false;
    checked_at_ = now;
    const bool fresh =
        error_.empty() && read_at_ && !passed(*read_at_, now, std::chrono::minutes(1));
    if (fresh && stamp_of(path_) == stamp_) return false;

    FileContent content = read_small_file(path_, FileKind::kRegular);
    error_ = std::move(content.error);
    if (!error_.empty()) return false;
    stamp_ = content.stamp;
    read_at_ = now;
    if (text_ == content.text) return false;
    text_ = std::move(content.text);
    return true;
  }

  /// Makes the next poll() read the file.
  void expire() {
    checked_at_.reset();
    read_at_.reset();
  }

 private:
  /// A clock that was set back counts as expired time: reading once too often is harmless.
  static bool passed(Time since, Time now, std::chrono::seconds duration) {
    return now < since || now - since >= duration;
  }

  std::string path_;
  std::optional<std::string> text_;
  std::string error_;
  std::optional<FileStamp> stamp_;
  std::optional<Time> checked_at_;
  std::optional<Time> read_at_;
};

}  // namespace lookout
