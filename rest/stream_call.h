// StreamCall: what watches and logs have in common.
#pragma once

#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <memory>
#include <string>
#include <utility>

#include "rest/client_impl.h"

namespace lookout::rest::detail {

/// A call whose response is a stream.
class StreamCall {
 public:
  void cancel() {
    cancelled_ = true;
    if (exchange_) exchange_->cancel();
  }
  const boost::asio::any_io_executor& executor() const { return control_.executor(); }

 protected:
  StreamCall(std::shared_ptr<Client::Impl> client, const BoundCall& call,
             boost::asio::any_io_executor executor, const Request& request)
      : client_(std::move(client)),
        description_(describe(request)),
        control_(call, call.options.timeout, client_->closing(), std::move(executor),
                 description_) {}
  ~StreamCall() = default;

  const std::shared_ptr<Client::Impl> client_;
  const std::string description_;
  CallControl control_;
  std::shared_ptr<HttpExchange> exchange_;
  std::atomic<bool> cancelled_{false};
};

}  // namespace lookout::rest::detail
