// The log of a container, line by line.
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

/// Which part of a log: v1.PodLogOptions, kubectl logs.
struct LogOptions {
  /// Needed if the pod has more than one.
  LOOKOUT_OPTION std::string container = {};
  /// Whether to go on with what is logged from now on. The stream then ends with the container.
  bool follow = false;
  /// The log of the container before its last restart.
  bool previous = false;
  /// Whether each line begins with its time (RFC 3339) and a space.
  bool timestamps = false;
  /// Only what was logged in this time before now; 0: everything.
  std::chrono::seconds since{0};
  /// Only so many lines from the end, before `follow` adds to them.
  std::optional<std::int64_t> tail_lines = {};
  /// The server ends the log after so many bytes, which may be within a line.
  std::optional<std::int64_t> limit_bytes = {};
  /// A longer line comes in pieces of this size: so much memory a stream takes. At least 1.
  std::size_t max_line_bytes = 1u << 20;
};

/// A line, without its line feed. The bytes are the container's: they need not be UTF-8.
struct LogLine {
  std::string text = {};
  /// Whether the line goes on with the next one: it is longer than LogOptions::max_line_bytes.
  bool continued = false;
};

/// One log that is being read. Letting go of it ends the request, as cancel() does, and so does
/// letting go of the last copy of the Client that it came from. Not thread-safe, except for
/// cancel(); a stream may be moved, or let go of, while a coroutine waits in async_next(). Lines
/// that are not read stay at the server.
///
///     for (const auto& line : pods.logs("web", {.tail_lines = 10})) puts(line.text.c_str());
///
/// There is no deadline unless the call names one (CallOptions::timeout). A connection that breaks
/// throws TransportError; a log cannot be continued where it broke, but `since` comes close.
class LogStream {
 public:
  class Impl;
  class iterator;
  /// No log: good for nothing but being assigned to.
  LogStream();
  explicit LogStream(std::shared_ptr<Impl> impl);
  LogStream(LogStream&&) noexcept;
  LogStream& operator=(LogStream&&) noexcept;
  ~LogStream();

  /// Waits for the next line; nothing at the end of the log. Throws TransportError.
  Awaitable<std::optional<LogLine>> async_next();
  /// The blocking twin. A stop ends the log as cancel() does.
  std::optional<LogLine> next(std::stop_token stop = {});

  /// For a loop, once: each step blocks as next() does.
  iterator begin() & LOOKOUT_LIFETIME_BOUND;
  iterator begin() && = delete;
  std::default_sentinel_t end() const { return {}; }

  /// Ends the log from any thread: a waiting or later next() throws TransportError of kind
  /// kCancelled.
  void cancel();

 private:
  std::shared_ptr<Impl> impl_;
};

/// The lines of a stream, as they come.
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
