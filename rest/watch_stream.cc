#include "lookout/rest/watch_stream.h"

#include <fmt/format.h>

#include <boost/asio/this_coro.hpp>
#include <utility>

#include "lookout/api/error.h"
#include "lookout/api/json.h"
#include "lookout/api/protobuf.h"
#include "lookout/base/detail/run_on.h"
#include "lookout/base/error.h"
#include "rest/shielded.h"
#include "rest/watch_stream_impl.h"

namespace lookout::rest {
namespace {

using Kind = TransportError::Kind;
using Events = std::vector<api::WatchEvent>;

// The stream may be moved or destroyed while these wait.

Awaitable<Events> next_of(std::shared_ptr<WatchStream::Impl> impl, Events reuse) {
  co_return co_await detail::shielded(impl->next(std::move(reuse)));
}

Awaitable<bool> next_into(std::shared_ptr<WatchStream::Impl> impl, Events* events) {
  const auto cancellation = co_await boost::asio::this_coro::cancellation_state;
  const bool already_cancelled = detail::is_set(cancellation);
  *events = co_await lookout::detail::run_on(impl->executor(), next_of(impl, std::move(*events)));
  if (detail::is_set(cancellation) && !already_cancelled) {
    // Keep events that arrived together with the cancellation.
    impl->put_back(std::move(*events));
    detail::throw_cancelled();
  }
  co_return !events->empty();
}

const std::shared_ptr<WatchStream::Impl>& opened_watch(
    const std::shared_ptr<WatchStream::Impl>& impl) {
  if (impl == nullptr) {
    throw InvalidArgument("the watch is empty: assign the result of watch() to it first");
  }
  return impl;
}

}  // namespace

WatchStream::Impl::Impl(std::shared_ptr<Client::Impl> client, api::Resource resource,
                        std::function<void(const api::MalformedObject&)> on_malformed,
                        const detail::BoundCall& call, boost::asio::any_io_executor executor,
                        const detail::Request& request)
    : StreamCall(std::move(client), call, std::move(executor), request),
      resource_(std::move(resource)),
      on_malformed_(std::move(on_malformed)) {}

void WatchStream::Impl::fail(Kind kind, std::string_view why) const {
  throw TransportError(kind, fmt::format("{}: {}", description_, why));
}

Awaitable<void> WatchStream::Impl::open(detail::Request request, api::StreamOptions options,
                                        ContentType type, bool metadata_only) {
  const char* const as = metadata_only ? "PartialObjectMetadata" : "";
  auto [answer, encoding] = co_await client_->open_objects(request, resource_, type, as, control_);
  const auto take = [this](api::WatchEvent event) {
    if (!undecodable_) pending_.push_back(std::move(event));
  };
  const auto refuse = [this](const api::MalformedObject& malformed) {
    if (undecodable_) return;
    undecodable_ = malformed;
    on_malformed_(malformed);
  };
  options.lossless = encoding.lossless;
  lossy_ = encoding.protobuf && !encoding.lossless;
  if (encoding.protobuf) {
    decoder_ = std::make_unique<api::ProtobufWatchDecoder>(std::move(options), take, refuse);
  } else {
    decoder_ = std::make_unique<api::JsonWatchDecoder>(std::move(options), take, refuse);
  }
  exchange_ = std::move(answer.exchange);
}

Awaitable<Events> WatchStream::Impl::next(Events reuse) {
  if (!put_back_.empty()) co_return std::exchange(put_back_, {});
  pending_ = std::move(reuse);
  pending_.clear();
  while (pending_.empty()) {
    if (undecodable_) {
      // The lost change is unknown, so the state after it is unknown, too.
      exchange_->cancel();
      throw api::DecodeError(fmt::format(
          "{}: an event of {} bytes{}{} cannot be decoded: {}", description_, undecodable_->bytes,
          undecodable_->key.empty() ? "" : " for ", undecodable_->key, undecodable_->reason));
    }
    if (garbled_) {
      if (!decoder_->would_lose()) fail(Kind::kProtocol, decoder_->error());
      // The next watch uses JSON.
      if (decoder_->unknown_fields().count > 0) {
        client_->encodings().give_up_protobuf(resource_, decoder_->error());
      } else {
        client_->encodings().avoid_protobuf(resource_, decoder_->error());
      }
      exchange_->cancel();
      break;
    }
    piece_ = co_await exchange_->read(std::move(piece_));
    if (piece_.empty()) {
      // A server that is shutting down may truncate an event.
      if (!decoder_->finish()) fail(Kind::kBroken, decoder_->error());
      break;
    }
    garbled_ = !decoder_->feed(piece_);
    if (lossy_ && decoder_->unknown_fields().count > 0) {
      client_->encodings().note_loss(resource_, decoder_->unknown_fields());
      lossy_ = false;
    }
  }
  co_return std::move(pending_);
}

std::optional<api::WatchEvent> WatchStream::Impl::next_blocking(std::stop_token stop) {
  const std::stop_callback cancel_on_stop(stop, [this] { cancel(); });
  if (cancelled_) fail(Kind::kCancelled, "cancelled");
  if (backlog_next_ == backlog_.size()) {
    backlog_next_ = 0;
    backlog_.clear();
    if (!client_->loop().run(next_into(shared_from_this(), &backlog_))) return std::nullopt;
  }
  return std::move(backlog_[backlog_next_++]);
}

WatchStream::WatchStream() = default;
WatchStream::WatchStream(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
WatchStream::WatchStream(WatchStream&&) noexcept = default;

WatchStream& WatchStream::operator=(WatchStream&& other) noexcept {
  WatchStream ended(std::exchange(impl_, std::exchange(other.impl_, nullptr)));
  return *this;
}

WatchStream::~WatchStream() { cancel(); }

Awaitable<bool> WatchStream::async_next(std::vector<api::WatchEvent>& events) {
  return next_into(opened_watch(impl_), &events);
}

std::optional<api::WatchEvent> WatchStream::next(std::stop_token stop) {
  const auto impl = opened_watch(impl_);
  return impl->next_blocking(std::move(stop));
}

void WatchStream::cancel() {
  if (impl_) impl_->cancel();
}

}  // namespace lookout::rest
