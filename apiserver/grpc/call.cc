#include "apiserver/grpc/call.h"

#include <utility>

#include "apiserver/grpc/http2_session.h"

namespace lookout::apiserver::grpc {

using rest::TransportError;

std::string framed(std::string_view message) {
  std::string out(1, '\0');
  out.reserve(kMessageHead + message.size());
  for (int shift = 24; shift >= 0; shift -= 8)
    out.push_back(static_cast<char>(message.size() >> shift & 0xff));
  out.append(message);
  return out;
}

void CallState::opened() {
  const std::lock_guard lock(mutex_);
  opened_ = true;
}

void CallState::receive(std::string_view bytes) {
  const std::lock_guard lock(mutex_);
  ring_reader();
  buffer_.append(bytes);
}

void CallState::finish(Status status) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(finished_, true)) return;
  status_ = std::move(status);
  ring_reader();
}

void CallState::fail(TransportError::Kind kind, std::string_view why) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(finished_, true)) return;
  error_.emplace(kind, what + ": " + std::string(why));
  ring_reader();
}

bool CallState::is_cancelled() const {
  const std::lock_guard lock(mutex_);
  return cancelled_;
}

CallState::Taken CallState::take(std::string& bytes) {
  bytes.clear();
  Taken out;
  const std::lock_guard lock(mutex_);
  if (cancelled_) {
    // The connection's reason for the same end is the better message.
    if (error_ && error_->kind() == TransportError::Kind::kCancelled) throw TransportError(*error_);
    throw TransportError(TransportError::Kind::kCancelled, what + ": cancelled");
  }
  if (!buffer_.empty()) {
    std::swap(bytes, buffer_);
    consumed_ += bytes.size();
    // The connection opens the window once for many bytes, not for each piece.
    if (consumed_ >= Http2Session::kStreamWindow / 4 && !finished_)
      out.consumed = std::exchange(consumed_, 0);
    return out;
  }
  if (error_) throw TransportError(*error_);
  out.end = finished_;
  return out;
}

bool CallState::cancel() {
  const std::lock_guard lock(mutex_);
  if (finished_ || std::exchange(cancelled_, true)) return false;
  if (event_) event_->ring();
  return true;
}

void CallState::leave() {
  const std::lock_guard lock(mutex_);
  event_.reset();
}

Status CallState::status() const {
  const std::lock_guard lock(mutex_);
  return status_;
}

TransportError CallState::timeout() const {
  const std::lock_guard lock(mutex_);
  if (!opened_) return {TransportError::Kind::kUnreachable, what + ": no connection in time"};
  return {TransportError::Kind::kTimeout, what + ": no answer in time"};
}

}  // namespace lookout::apiserver::grpc
