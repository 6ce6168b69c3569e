// LogStream::Impl.
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "lookout/rest/log_stream.h"
#include "rest/client_impl.h"
#include "rest/stream_call.h"

namespace lookout::rest {

/// Runs on one strand. Lives at least as long as a pending wait.
class LogStream::Impl : public detail::StreamCall,
                        public std::enable_shared_from_this<LogStream::Impl> {
 public:
  Impl(std::shared_ptr<Client::Impl> client, const detail::BoundCall& call,
       boost::asio::any_io_executor executor, const detail::Request& request,
       std::size_t max_line_bytes);

  /// Sends the request and waits for the start of the response.
  Awaitable<void> open(detail::Request request);

  Awaitable<std::optional<LogLine>> next();
  /// The next call of next() returns the line again. Call it only when no wait is pending.
  void put_back(std::optional<LogLine> line) { put_back_ = std::move(line); }
  std::optional<LogLine> next_blocking(std::stop_token stop);

 private:
  /// The next received line; nullopt if it is incomplete.
  std::optional<LogLine> take();

  const std::size_t max_line_bytes_;
  std::string piece_;      // of the body, as received
  std::size_t taken_ = 0;  // bytes of piece_
  std::string line_;       // the beginning of an incomplete line
  std::optional<LogLine> put_back_;
  bool ended_ = false;
  std::exception_ptr broken_;  // why the stream has ended
};

}  // namespace lookout::rest
