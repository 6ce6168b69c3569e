// The inside of a LogStream.
#pragma once

#include <atomic>
#include <cstddef>
#include <exception>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "lookout/rest/log_stream.h"
#include "rest/client_impl.h"

namespace lookout::rest {

/// Lives on one strand, whoever waits for its lines, and at least as long as somebody waits.
class LogStream::Impl : public std::enable_shared_from_this<LogStream::Impl> {
 public:
  Impl(std::shared_ptr<Client::Impl> client, const detail::BoundCall& call,
       boost::asio::any_io_executor executor, const detail::Request& request,
       std::size_t max_line_bytes);

  /// Sends the request and waits for the answer to begin.
  Awaitable<void> open(detail::Request request);

  Awaitable<std::optional<LogLine>> next();
  /// The next call of next() returns it again. Call when nothing waits.
  void put_back(std::optional<LogLine> line) { put_back_ = std::move(line); }
  std::optional<LogLine> next_blocking(std::stop_token stop);
  void cancel();

  const boost::asio::any_io_executor& executor() const { return control_.executor(); }

 private:
  /// The next line of what has come; nothing if it is not whole yet.
  std::optional<LogLine> take();

  const std::shared_ptr<Client::Impl> client_;
  const std::string description_;
  const std::size_t max_line_bytes_;
  detail::CallControl control_;
  std::shared_ptr<detail::HttpExchange> exchange_;
  std::string piece_;      // of the body, as it came
  std::size_t taken_ = 0;  // of piece_
  std::string line_;       // the beginning of a line that is not whole
  std::optional<LogLine> put_back_;
  bool ended_ = false;
  std::exception_ptr broken_;  // why it has ended
  std::atomic<bool> cancelled_{false};
};

}  // namespace lookout::rest
