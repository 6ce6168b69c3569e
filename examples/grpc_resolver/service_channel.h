// gRPC calls to a service of the registry: "lookout:///greeter".
#pragma once

#include <grpcpp/channel.h>
#include <grpcpp/security/credentials.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "lookout/registry/registry.h"

namespace lookout_grpc {

/// Channels to the ready instances of a service, used one after the other; follows the registry:
///
///     ServiceChannel greeter(registry, "lookout:///greeter", grpc::InsecureChannelCredentials());
///     auto stub = Greeter::NewStub(greeter.get());      // for each call
///     stub->Greet(&context, request, &reply);
///
/// gRPC 1.51, which Debian 12 has, keeps the interface of name resolvers to itself (its headers are
/// not installed), so "lookout" cannot be made a scheme that grpc::CreateChannel() understands.
/// This is made of what is public: a grpc::Channel for each instance, which stays as long as the
/// instance does, in a list that is replaced as a whole when the set changes. (One channel to
/// "ipv4:a,b,c" with gRPC's own round_robin would have to be replaced with each change, and would
/// take all its connections along: gRPC shares none between channels to different lists.)
///
/// As with gRPC's round_robin, instances that are connected come first. Calls that run stay on the
/// channel they began on, also when its instance leaves. A service whose last instance leaves keeps
/// its last addresses, as kratos' resolver does: calls fail with UNAVAILABLE, or wait if their
/// context says wait_for_ready.
class ServiceChannel {
 public:
  /// `target` is "lookout:///SERVICE". An endpoint "PROTOCOL://..." of each instance is used. The
  /// registry must outlive this. Throws lookout::InvalidArgument for another target.
  ServiceChannel(lookout::registry::Discovery& registry, const std::string& target,
                 std::shared_ptr<grpc::ChannelCredentials> credentials,
                 std::string protocol = "grpc");
  ServiceChannel(const ServiceChannel&) = delete;
  ServiceChannel& operator=(const ServiceChannel&) = delete;

  /// The channel for the next call; null as long as the service never had an instance. From any
  /// thread.
  std::shared_ptr<grpc::Channel> get() const;

  /// Waits for the first instance; false if none comes in time.
  bool wait_for_instances(std::chrono::milliseconds time) const;

 private:
  /// By address, as gRPC writes it: "ipv4:10.0.0.1:9000".
  using ByAddress = std::map<std::string, std::shared_ptr<grpc::Channel>>;
  using List = std::vector<std::shared_ptr<grpc::Channel>>;

  void follow(const lookout::registry::InstanceSet& set);

  const std::shared_ptr<grpc::ChannelCredentials> credentials_;
  const std::string protocol_;
  const std::string service_;
  ByAddress channels_;  // only the callback looks at it
  std::atomic<std::shared_ptr<const List>> list_;
  // Begins anywhere: programs that call only once must not all call the same instance.
  mutable std::atomic<std::size_t> next_{std::random_device{}()};
  lookout::registry::Subscription subscription_;  // ends first
};

}  // namespace lookout_grpc
