// gRPC calls to a service of the registry. Header-only: link lookout::registry_grpc.
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/channel_arguments.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "lookout/api/error.h"
#include "lookout/base/clock.h"
#include "lookout/registry/registry.h"

namespace lookout::registry {

/// Channels to the ready instances of a service, used in turn; follows the registry:
///
///     registry::GrpcService greeter(registry, "lookout:///greeter",
///                                   grpc::InsecureChannelCredentials());
///     auto stub = Greeter::NewStub(greeter.channel());      // for each call
///     stub->Greet(&context, request, &reply);
///
/// The interface for name resolvers is internal in gRPC 1.51 (its headers are not installed), so
/// grpc::CreateChannel() cannot support the scheme "lookout". This class uses only public
/// interfaces: it has a grpc::Channel for each instance, for as long as the instance exists, in a
/// list that is replaced as a whole when the set changes. docs/registry.md compares it with one
/// channel to "ipv4:a,b,c".
///
/// As with gRPC's round_robin, connected instances come first. Running calls stay on their channel,
/// even if its instance leaves. When the last instance leaves, the service keeps its last
/// addresses, as kratos' resolver does: calls fail with UNAVAILABLE, or wait if their context has
/// wait_for_ready. All functions may be called from any thread.
class GrpcService {
 public:
  /// `target` is "lookout:///SERVICE". Uses the first endpoint of each instance with this scheme.
  /// The discovery must outlive this object. Throws InvalidArgument for another target.
  GrpcService(Discovery& discovery, const std::string& target,
              std::shared_ptr<grpc::ChannelCredentials> credentials, std::string scheme = "grpc")
      : credentials_(std::move(credentials)),
        scheme_(std::move(scheme)),
        service_(service_of(target)) {
    subscription_ = discovery.follow(service_, [this](const InstanceSetPtr& set) { follow(*set); });
  }
  GrpcService(const GrpcService&) = delete;
  GrpcService& operator=(const GrpcService&) = delete;

  /// The channel for the next call; null if the service has never had an instance.
  std::shared_ptr<grpc::Channel> channel() const {
    const auto channels = latest();
    if (!channels) return nullptr;
    const auto& list = channels->list;
    const std::size_t number = next_.fetch_add(1, std::memory_order_relaxed);
    const auto& next = list[number % list.size()];
    if (is_connected(*next)) return next;
    // The successor of unreachable instances must not get all of their calls.
    std::vector<const std::shared_ptr<grpc::Channel>*> connected;
    for (const auto& channel : list) {
      if (is_connected(*channel)) connected.push_back(&channel);
    }
    return connected.empty() ? next : *connected[number / list.size() % connected.size()];
  }
  /// The channel to an instance that a Balancer has picked:
  ///
  ///     web.call({.deadline = 1s, .scheme = "grpc"}, [&](const registry::Endpoint& e) {
  ///       return greet(*Greeter::NewStub(greeter.channel(e)));
  ///     });
  std::shared_ptr<grpc::Channel> channel(const Endpoint& endpoint) const {
    return channel_to(address_of(endpoint));
  }

  /// Waits for the first instance; returns false on timeout.
  bool wait_for_instances(std::chrono::milliseconds time) const {
    const auto end = std::chrono::steady_clock::now() + Clock::limited(time);
    while (!latest()) {
      if (std::chrono::steady_clock::now() >= end) return false;
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return true;
  }

 private:
  /// By address, as gRPC writes it: "ipv4:10.0.0.1:9000".
  using ByAddress = std::map<std::string, std::shared_ptr<grpc::Channel>>;
  struct Channels {
    ByAddress by_address;
    std::vector<std::shared_ptr<grpc::Channel>> list;
  };

  std::shared_ptr<const Channels> latest() const {
    const std::lock_guard lock(mutex_);
    return channels_;
  }

  /// Starts to connect if it is not.
  static bool is_connected(grpc::Channel& channel) {
    return channel.GetState(true) == GRPC_CHANNEL_READY;
  }

  static std::string service_of(const std::string& target) {
    constexpr std::string_view kScheme = "lookout:///";
    if (!target.starts_with(kScheme) || target.size() == kScheme.size()) {
      throw InvalidArgument("the target \"" + target + "\" is not lookout:///SERVICE");
    }
    return target.substr(kScheme.size());
  }
  static std::string address_of(const Endpoint& endpoint) {
    const std::string place(endpoint.authority());
    if (place.starts_with('[')) return "ipv6:" + place;
    // A host name, as providers of dubbo may have one.
    const bool is_name = endpoint.host().find_first_not_of("0123456789.") != std::string_view::npos;
    return (is_name ? "dns:" : "ipv4:") + place;
  }

  /// The channel to an address. A balancer may know the address before this object has its set.
  std::shared_ptr<grpc::Channel> channel_to(const std::string& address) const {
    const std::lock_guard lock(mutex_);
    if (channels_) {
      const auto found = channels_->by_address.find(address);
      if (found != channels_->by_address.end()) return found->second;
    }
    auto& channel = early_[address];
    if (!channel) channel = connect(address);
    return channel;
  }

  std::shared_ptr<grpc::Channel> connect(const std::string& address) const {
    grpc::ChannelArguments arguments;
    // The authority of calls, and the name that certificates must be issued for.
    arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, service_);
    auto channel = grpc::CreateCustomChannel(address, credentials_, arguments);
    channel->GetState(true);  // starts to connect before the first call
    return channel;
  }

  /// Called by the subscription, one call at a time.
  void follow(const InstanceSet& set) {
    auto after = std::make_shared<Channels>();
    for (const auto& instance : set) {
      const Endpoint* const endpoint = instance.endpoint(scheme_);
      if (endpoint == nullptr || !instance.ready) continue;
      const std::string address = address_of(*endpoint);
      auto& channel = after->by_address[address];
      if (!channel) channel = channel_to(address);
    }
    if (after->by_address.empty()) return;
    for (const auto& [address, channel] : after->by_address) after->list.push_back(channel);
    const std::lock_guard lock(mutex_);
    channels_ = std::move(after);
    early_.clear();
  }

  const std::shared_ptr<grpc::ChannelCredentials> credentials_;
  const std::string scheme_;
  const std::string service_;
  mutable std::mutex mutex_;                  // held only briefly
  std::shared_ptr<const Channels> channels_;  // guarded by mutex_
  mutable ByAddress early_;                   // channels that channels_ lacks; guarded by mutex_
  // Starts anywhere: programs that call only once must not all call the same instance.
  mutable std::atomic<std::size_t> next_{std::random_device{}()};
  Subscription subscription_;  // destroyed first
};

}  // namespace lookout::registry
