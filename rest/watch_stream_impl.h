// WatchStream::Impl.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "lookout/api/stream_decoder.h"
#include "lookout/rest/watch_stream.h"
#include "rest/client_impl.h"
#include "rest/stream_call.h"

namespace lookout::rest {

/// Runs on one strand. Lives at least as long as a pending wait.
class WatchStream::Impl : public detail::StreamCall,
                          public std::enable_shared_from_this<WatchStream::Impl> {
 public:
  Impl(std::shared_ptr<Client::Impl> client, api::Resource resource,
       std::function<void(const api::MalformedObject&)> on_malformed, const detail::BoundCall& call,
       boost::asio::any_io_executor executor, const detail::Request& request);

  /// Sends the request and waits for the start of the response.
  Awaitable<void> open(detail::Request request, api::StreamOptions options, ContentType type,
                       bool metadata_only);

  /// The next events; empty at the end of the watch. The memory of `reuse` is reused.
  Awaitable<std::vector<api::WatchEvent>> next(std::vector<api::WatchEvent> reuse);
  /// The next call of next() returns the events again. Call it only when no wait is pending.
  void put_back(std::vector<api::WatchEvent> events) { put_back_ = std::move(events); }
  std::optional<api::WatchEvent> next_blocking(std::stop_token stop);

 private:
  [[noreturn]] void fail(TransportError::Kind kind, std::string_view why) const;

  const api::Resource resource_;
  const std::function<void(const api::MalformedObject&)> on_malformed_;
  std::vector<api::WatchEvent> pending_;
  std::vector<api::WatchEvent> put_back_;
  std::unique_ptr<api::WatchDecoder> decoder_;
  bool garbled_ = false;  // the last data is malformed, so the stream ends
  std::optional<api::MalformedObject> undecodable_;  // ends the stream, too
  bool lossy_ = false;                               // unknown fields are to be reported
  std::string piece_;

  // Events that the blocking next() has received but not yet returned.
  std::vector<api::WatchEvent> backlog_;
  std::size_t backlog_next_ = 0;
};

}  // namespace lookout::rest
