#include "lookout/rest/watch_stream.h"

#include <fmt/format.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <utility>

#include "rest/watch_stream_impl.h"

namespace lookout::rest {

WatchStream::Impl::Impl(std::shared_ptr<Client::Impl> client, api::StreamOptions options,
                        std::function<void(const api::MalformedObject&)> on_malformed,
                        const CallOptions& call, boost::asio::any_io_executor executor,
                        std::string description)
    : client_(std::move(client)),
      description_(std::move(description)),
      control_(call, std::chrono::milliseconds(0), std::move(executor), description_),
      decoder_(
          std::move(options),
          [this](api::WatchEvent event) { pending_.push_back(std::move(event)); },
          std::move(on_malformed)) {}

Awaitable<void> WatchStream::Impl::open(const detail::Request& request) {
  auto answer = co_await client_->open(request, control_);
  if (!detail::is_json(answer.head)) {
    throw api::DecodeError(
        fmt::format("{}: expected JSON, got {}", description_, answer.head.content_type));
  }
  exchange_ = std::move(answer.exchange);
}

Awaitable<bool> WatchStream::Impl::next(std::vector<api::WatchEvent>& events) {
  pending_.clear();
  while (pending_.empty()) {
    piece_ = co_await exchange_->read(std::move(piece_));
    if (piece_.empty()) {
      // A server that goes away may cut an event in two.
      if (!decoder_.finish()) {
        throw TransportError(TransportError::Kind::kBroken,
                             fmt::format("{}: {}", description_, decoder_.error()));
      }
      events.clear();
      co_return false;
    }
    if (!decoder_.feed(piece_) && pending_.empty()) {
      throw TransportError(TransportError::Kind::kProtocol,
                           fmt::format("{}: {}", description_, decoder_.error()));
    }
  }
  std::swap(events, pending_);
  co_return true;
}

void WatchStream::Impl::cancel() {
  if (exchange_) exchange_->cancel();
}

namespace {

Awaitable<bool> next_of(WatchStream::Impl* impl, std::vector<api::WatchEvent>* events) {
  co_return co_await impl->next(*events);
}

}  // namespace

WatchStream::WatchStream() = default;
WatchStream::WatchStream(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
WatchStream::WatchStream(WatchStream&&) noexcept = default;
WatchStream& WatchStream::operator=(WatchStream&&) noexcept = default;
WatchStream::~WatchStream() = default;

Awaitable<bool> WatchStream::async_next(std::vector<api::WatchEvent>& events) {
  return boost::asio::co_spawn(impl_->executor(), next_of(impl_.get(), &events),
                               boost::asio::use_awaitable);
}

std::optional<api::WatchEvent> WatchStream::next(std::stop_token stop) {
  auto& backlog = impl_->backlog();
  auto& index = impl_->backlog_next();
  if (index == backlog.size()) {
    const std::stop_callback cancel_on_stop(stop, [this] { cancel(); });
    index = 0;
    if (!impl_->loop().run(async_next(backlog))) return std::nullopt;
  }
  return std::move(backlog[index++]);
}

void WatchStream::cancel() { impl_->cancel(); }

}  // namespace lookout::rest
