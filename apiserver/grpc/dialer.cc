#include "apiserver/grpc/dialer.h"

#include <utility>

namespace lookout::apiserver::grpc {

using boost::system::error_code;

Dialer::Dialer(Socket& socket, Addresses addresses, Clock::time_point deadline, Done done)
    : socket_(socket),
      addresses_(std::move(addresses)),
      deadline_(deadline),
      done_(std::move(done)),
      timer_(socket.get_executor()) {}

void Dialer::try_next() {
  error_code ignored;
  socket_.close(ignored);
  late_ = false;
  const auto& address = addresses_[next_++];
  if (next_ < addresses_.size()) limit_attempt();
  socket_.async_connect(
      address, [self = shared_from_this()](const error_code& error) { self->on_end(error); });
}

void Dialer::limit_attempt() {
  const auto now = Clock::now();
  const auto left = static_cast<Clock::rep>(addresses_.size() - next_ + 1);
  timer_.expires_at(now + (deadline_ - now) / left);
  timer_.async_wait([self = shared_from_this(), attempt = next_](const error_code& error) {
    if (error || self->done_ == nullptr || self->next_ != attempt) return;
    self->late_ = true;
    error_code ignored;
    self->socket_.close(ignored);
  });
}

void Dialer::on_end(const error_code& error) {
  if (done_ == nullptr) return;
  timer_.cancel();
  if ((error || late_) && next_ < addresses_.size()) return try_next();
  // The timer may already have expired.
  ++next_;
  std::exchange(done_, nullptr)(error);
}

}  // namespace lookout::apiserver::grpc
