#include "apiserver/grpc/channel.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <utility>
#include <vector>

#include "apiserver/grpc/connection.h"
#include "lookout/base/detail/log.h"

namespace lookout::apiserver::grpc {

namespace asio = boost::asio;
using Kind = rest::TransportError::Kind;

namespace {

constexpr std::chrono::hours kRarestPing{1};

bool same(const std::shared_ptr<const rest::Credential>& a,
          const std::shared_ptr<const rest::Credential>& b) {
  return a == b || (a != nullptr && b != nullptr && *a == *b);
}

}  // namespace

/// The connections of a channel.
class Channel::Connections : public Carrier {
 public:
  Connections(asio::io_context& context, Server server)
      : Carrier(context), server_(std::move(server)) {}

  void begin(std::shared_ptr<CallState> call) override {
    if (call->is_cancelled()) return;
    if (closed_) return call->fail(Kind::kCancelled, "the client was closed");
    Connection& connection = connection_for(call->request.certificate);
    connection.begin(std::move(call));
  }

  void send(const std::shared_ptr<CallState>& call, const std::string& message) override {
    if (const auto connection = call->connection.lock()) connection->send(*call, message);
  }
  void consumed(const std::shared_ptr<CallState>& call, std::size_t bytes) override {
    if (const auto connection = call->connection.lock()) connection->consumed(*call, bytes);
  }
  void cancel(const std::shared_ptr<CallState>& call) override {
    if (const auto connection = call->connection.lock()) connection->cancel(*call);
  }

  void close() override {
    closed_ = true;
    for (const auto& connection : std::exchange(all_, {}))
      connection->close(Kind::kCancelled, "the client was closed");
  }

 private:
  Connection& connection_for(const std::shared_ptr<const rest::Credential>& certificate) {
    std::erase_if(all_, [](const auto& connection) { return connection->is_closed(); });
    const auto ca = server_.ca ? server_.ca() : nullptr;
    for (const auto& connection : all_) {
      if (connection->ca() == ca && same(connection->certificate(), certificate)) {
        if (connection->can_take()) return *connection;
      } else {
        // The certificate or the authorities were renewed. Running calls may finish.
        connection->retire();
      }
    }
    const auto give_back = [weak = weak_from_this()](std::shared_ptr<CallState> call) {
      const auto self = weak.lock();
      if (self == nullptr) return;
      self->post([call = std::move(call)](Carrier& all) mutable { all.begin(std::move(call)); });
    };
    const auto too_many_pings = [weak = weak_from_this()] {
      if (const auto self = weak.lock()) static_cast<Connections&>(*self).ping_less();
    };
    all_.push_back(std::make_shared<Connection>(strand(), server_, certificate, ca, give_back,
                                                too_many_pings));
    all_.back()->connect();
    return *all_.back();
  }

  /// Doubles the ping interval, as gRPC's clients do.
  void ping_less() {
    server_.ping_after = std::min<std::chrono::milliseconds>(server_.ping_after * 2, kRarestPing);
    log::info("{} rejects frequent pings: the next one follows after {} s of silence", server_.url,
              std::chrono::duration_cast<std::chrono::seconds>(server_.ping_after).count());
  }

  Server server_;
  std::vector<std::shared_ptr<Connection>> all_;
  bool closed_ = false;
};

Channel::Channel(asio::io_context& context, Server server)
    : server_(std::move(server)), carrier_(std::make_shared<Connections>(context, server_)) {}

Channel::Channel(std::shared_ptr<Carrier> carrier, Server server)
    : server_(std::move(server)), carrier_(std::move(carrier)) {}

Channel::~Channel() {
  carrier_->post([](Carrier& carrier) { carrier.close(); });
}

std::shared_ptr<Call> Channel::start(CallRequest request, asio::any_io_executor executor) {
  const std::string what = server_.url + request.path;
  auto state = std::make_shared<CallState>(std::move(request), what, std::move(executor));
  carrier_->dispatch([state](Carrier& carrier) { carrier.begin(state); });
  return std::make_shared<Call>(shared_from_this(), std::move(state));
}

void Channel::shutdown() {
  const auto closed = std::make_shared<std::promise<void>>();
  carrier_->post([closed](Carrier& carrier) {
    carrier.close();
    closed->set_value();
  });
  const auto executor = carrier_->strand().get_inner_executor();
  if (!executor.running_in_this_thread() && !executor.context().stopped())
    closed->get_future().wait();
}

Call::Call(std::shared_ptr<Channel> channel, std::shared_ptr<CallState> state)
    : channel_(std::move(channel)), state_(std::move(state)) {}

Call::~Call() {
  cancel();
  state_->leave();
}

Awaitable<std::string> Call::read(std::string reuse, std::chrono::steady_clock::time_point until) {
  until = std::min(until, state_->request.deadline);
  for (;;) {
    const CallState::Taken taken = state_->take(reuse);
    if (taken.consumed != 0) {
      channel_->carrier_->dispatch([state = state_, bytes = taken.consumed](Carrier& carrier) {
        carrier.consumed(state, bytes);
      });
    }
    if (taken.end || !reuse.empty()) co_return std::move(reuse);
    if (std::chrono::steady_clock::now() >= until) {
      cancel();
      throw state_->timeout();
    }
    co_await state_->wait(until);
  }
}

void Call::send(std::string message) {
  channel_->carrier_->dispatch([state = state_, message = std::move(message)](Carrier& carrier) {
    carrier.send(state, message);
  });
}

void Call::cancel() {
  if (!state_->cancel()) return;
  channel_->carrier_->post([state = state_](Carrier& carrier) { carrier.cancel(state); });
}

}  // namespace lookout::apiserver::grpc
