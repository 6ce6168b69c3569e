#include "lookout/rest/log_stream.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/asio/this_coro.hpp>
#include <exception>
#include <utility>

#include "lookout/api/error.h"
#include "lookout/base/detail/run_on.h"
#include "lookout/base/error.h"
#include "rest/log_stream_impl.h"
#include "rest/shielded.h"

namespace lookout::rest {
namespace {

// The stream may be moved or destroyed while these wait.

Awaitable<std::optional<LogLine>> next_of(std::shared_ptr<LogStream::Impl> impl) {
  co_return co_await detail::shielded(impl->next());
}

Awaitable<std::optional<LogLine>> next_on_strand(std::shared_ptr<LogStream::Impl> impl) {
  const auto cancellation = co_await boost::asio::this_coro::cancellation_state;
  const bool already_cancelled = detail::is_set(cancellation);
  auto line = co_await lookout::detail::run_on(impl->executor(), next_of(impl));
  if (detail::is_set(cancellation) && !already_cancelled) {
    // Keep a line that arrived together with the cancellation.
    impl->put_back(std::move(line));
    detail::throw_cancelled();
  }
  co_return line;
}

const std::shared_ptr<LogStream::Impl>& opened_log(const std::shared_ptr<LogStream::Impl>& impl) {
  if (impl == nullptr) {
    throw InvalidArgument("the log stream is empty: assign the result of logs() to it first");
  }
  return impl;
}

}  // namespace

LogStream::Impl::Impl(std::shared_ptr<Client::Impl> client, const detail::BoundCall& call,
                      boost::asio::any_io_executor executor, const detail::Request& request,
                      std::size_t max_line_bytes)
    : StreamCall(std::move(client), call, std::move(executor), request),
      max_line_bytes_(max_line_bytes) {}

Awaitable<void> LogStream::Impl::open(detail::Request request) {
  auto answer = co_await client_->open(request, control_);
  exchange_ = std::move(answer.exchange);
}

std::optional<LogLine> LogStream::Impl::take() {
  const std::size_t room = max_line_bytes_ - line_.size();
  const std::size_t feed = piece_.find('\n', taken_);
  const bool whole = feed != std::string::npos && feed - taken_ <= room;
  const std::size_t length =
      whole ? feed - taken_ : std::min({room, piece_.size() - taken_, feed - taken_});
  line_.append(piece_, taken_, length);
  taken_ += length + (whole ? 1 : 0);
  // (A line exactly as long as the limit waits for its line feed.)
  if (!whole && (length < room || taken_ == piece_.size())) return std::nullopt;
  return LogLine{std::exchange(line_, {}), !whole};
}

Awaitable<std::optional<LogLine>> LogStream::Impl::next() {
  if (put_back_) co_return std::exchange(put_back_, std::nullopt);
  while (!ended_) {
    if (taken_ < piece_.size()) {
      if (line_.size() == max_line_bytes_ && piece_[taken_] != '\n')
        co_return LogLine{std::exchange(line_, {}), true};
      auto line = take();
      if (line) co_return line;
    }
    taken_ = 0;
    try {
      piece_ = co_await exchange_->read(std::move(piece_));
      ended_ = piece_.empty();
    } catch (const TransportError& e) {
      // Return the incomplete line first.
      if (rest::is_cancelled(e)) throw;
      piece_.clear();
      broken_ = std::current_exception();
      ended_ = true;
    }
  }
  // A log may end without a line feed.
  if (!line_.empty()) co_return LogLine{std::exchange(line_, {}), false};
  if (broken_) std::rethrow_exception(broken_);
  co_return std::nullopt;
}

std::optional<LogLine> LogStream::Impl::next_blocking(std::stop_token stop) {
  const std::stop_callback cancel_on_stop(stop, [this] { cancel(); });
  if (cancelled_)
    throw TransportError(TransportError::Kind::kCancelled,
                         fmt::format("{}: cancelled", description_));
  return client_->loop().run(next_on_strand(shared_from_this()));
}

LogStream::LogStream() = default;
LogStream::LogStream(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}
LogStream::LogStream(LogStream&&) noexcept = default;

LogStream& LogStream::operator=(LogStream&& other) noexcept {
  const LogStream ended(std::exchange(impl_, std::exchange(other.impl_, nullptr)));
  return *this;
}

LogStream::~LogStream() { cancel(); }

Awaitable<std::optional<LogLine>> LogStream::async_next() {
  return next_on_strand(opened_log(impl_));
}

std::optional<LogLine> LogStream::next(std::stop_token stop) {
  const auto impl = opened_log(impl_);
  return impl->next_blocking(std::move(stop));
}

void LogStream::cancel() {
  if (impl_) impl_->cancel();
}

}  // namespace lookout::rest
