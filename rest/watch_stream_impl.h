// The inside of a WatchStream.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "lookout/api/json.h"
#include "lookout/rest/watch_stream.h"
#include "rest/client_impl.h"

namespace lookout::rest {

/// Lives on one strand, whoever waits for its events.
class WatchStream::Impl {
 public:
  Impl(std::shared_ptr<Client::Impl> client, api::StreamOptions options,
       std::function<void(const api::MalformedObject&)> on_malformed, const CallOptions& call,
       boost::asio::any_io_executor executor, std::string description);

  /// Sends the request and waits for the answer to begin.
  Awaitable<void> open(const detail::Request& request);
  Awaitable<bool> next(std::vector<api::WatchEvent>& events);
  void cancel();

  const boost::asio::any_io_executor& executor() const { return control_.executor(); }
  EventLoop& loop() const { return client_->loop(); }

  /// What the blocking twin has been given and not yet handed on.
  std::vector<api::WatchEvent>& backlog() { return backlog_; }
  std::size_t& backlog_next() { return backlog_next_; }

 private:
  const std::shared_ptr<Client::Impl> client_;
  const std::string description_;
  detail::CallControl control_;
  std::vector<api::WatchEvent> pending_;
  api::JsonWatchDecoder decoder_;
  std::shared_ptr<detail::HttpExchange> exchange_;
  std::string piece_;
  std::vector<api::WatchEvent> backlog_;
  std::size_t backlog_next_ = 0;
};

}  // namespace lookout::rest
