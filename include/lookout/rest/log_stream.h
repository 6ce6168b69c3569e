// LogStream: the log of a container, line by line.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "lookout/base/attributes.h"
#include "lookout/base/event_loop.h"

namespace lookout::rest {

/// The part of a log to read: v1.PodLogOptions, kubectl logs.
struct LogOptions {
  /// Required if the pod has more than one container.
  LOOKOUT_OPTION std::string container = {};
  /// Continues with new lines as they are logged. The stream then ends with the container.
  bool follow = false;
  /// The log of the container before its last restart.
  bool previous = false;
  /// Prefixes each line with its time (RFC 3339) and a space.
  bool timestamps = false;
  /// Only lines of this period before now; 0: all lines.
  std::chrono::seconds since{0};
  /// Only this many lines from the end, before `follow` adds new ones.
  std::optional<std::int64_t> tail_lines = {};
  /// The server ends the log after this many bytes, possibly within a line.
  std::optional<std::int64_t> limit_bytes = {};
  /// Longer lines are split into pieces of this size, which limits the memory of a stream. At least
  /// 1.
  std::size_t max_line_bytes = 1u << 20;
};

/// A line, without its line feed. The bytes come from the container and need not be UTF-8.
struct LogLine {
  std::string text = {};
  /// True if the next LogLine continues this line: it is longer than LogOptions::max_line_bytes.
  bool continued = false;
};

/// One log request. The destructor ends it, as cancel() does, and so does destroying the last copy
/// of its Client. Not thread-safe, except for cancel(); a stream may be moved or destroyed while a
/// coroutine waits in async_next(). Unread lines stay at the server (back pressure).
///
///     for (const auto& line : pods.logs("web", {.tail_lines = 10})) puts(line.text.c_str());
///
/// There is no deadline unless the call sets one (CallOptions::timeout). A broken connection throws
/// TransportError, after delivery of a partial last line. A log cannot be resumed exactly at that
/// point; `since` comes close. As with a watch, a cancelled wait loses no line.
class LogStream {
 public:
  class Impl;
  class iterator;
  /// No log, for later assignment. Until then, reading throws InvalidArgument.
  LogStream();
  explicit LogStream(std::shared_ptr<Impl> impl);
  LogStream(LogStream&&) noexcept;
  LogStream& operator=(LogStream&&) noexcept;
  ~LogStream();

  /// Waits for the next line; empty at the end of the log. Throws TransportError.
  Awaitable<std::optional<LogLine>> async_next();
  /// The blocking form. A stop ends the log as cancel() does.
  std::optional<LogLine> next(std::stop_token stop = {});

  /// For a single range-based loop: each step blocks like next().
  iterator begin() & LOOKOUT_LIFETIME_BOUND;
  iterator begin() && = delete;
  std::default_sentinel_t end() const { return {}; }

  /// Ends the log from any thread: a waiting or later next() throws TransportError of kind
  /// kCancelled.
  void cancel();

 private:
  std::shared_ptr<Impl> impl_;
};

/// The lines of a stream, in order of arrival.
class LogStream::iterator {
 public:
  using value_type = LogLine;
  using difference_type = std::ptrdiff_t;
  using iterator_concept = std::input_iterator_tag;

  explicit iterator(LogStream& stream LOOKOUT_LIFETIME_BOUND)
      : stream_(&stream), line_(stream.next()) {}
  const LogLine& operator*() const LOOKOUT_LIFETIME_BOUND { return *line_; }
  const LogLine* operator->() const LOOKOUT_LIFETIME_BOUND { return &*line_; }
  iterator& operator++() {
    line_ = stream_->next();
    return *this;
  }
  void operator++(int) { ++*this; }
  friend bool operator==(const iterator& it, std::default_sentinel_t) { return !it.line_; }

 private:
  LogStream* stream_;
  std::optional<LogLine> line_;
};

inline LogStream::iterator LogStream::begin() & { return iterator(*this); }

}  // namespace lookout::rest
