#include "examples/grpc_resolver/service_channel.h"

#include <grpcpp/create_channel.h>
#include <grpcpp/support/channel_arguments.h>

#include <string_view>
#include <thread>
#include <utility>

#include "lookout/api/error.h"

namespace lookout_grpc {
namespace {

using lookout::registry::InstanceSet;
using lookout::registry::InstanceSetPtr;
using lookout::registry::ServiceInstance;

constexpr std::string_view kScheme = "lookout:///";

std::string service_of(const std::string& target) {
  if (!target.starts_with(kScheme) || target.size() == kScheme.size()) {
    throw lookout::InvalidArgument("the target \"" + target + "\" is not lookout:///SERVICE");
  }
  return target.substr(kScheme.size());
}

/// "ipv4:10.0.0.1:9000" or "ipv6:[fd00::1]:9000"; empty if the instance does not speak the
/// protocol.
std::string address_of(const ServiceInstance& instance, const std::string& protocol) {
  const auto* endpoint = instance.endpoint(protocol);
  if (endpoint == nullptr) return {};
  const std::string place(endpoint->authority());
  return (place.starts_with('[') ? "ipv6:" : "ipv4:") + place;
}

}  // namespace

ServiceChannel::ServiceChannel(lookout::registry::Discovery& registry, const std::string& target,
                               std::shared_ptr<grpc::ChannelCredentials> credentials,
                               std::string protocol)
    : credentials_(std::move(credentials)),
      protocol_(std::move(protocol)),
      service_(service_of(target)) {
  subscription_ = registry.follow(service_, [this](const InstanceSetPtr& set) { follow(*set); });
}

void ServiceChannel::follow(const InstanceSet& set) {
  ByAddress channels;
  for (const auto& instance : set) {
    const std::string address = address_of(instance, protocol_);
    if (address.empty() || !instance.ready) continue;
    auto& channel = channels[address];
    if (channel) continue;
    if (const auto known = channels_.find(address); known != channels_.end()) {
      channel = known->second;
      continue;
    }
    grpc::ChannelArguments arguments;
    // The authority of calls, and the name that certificates must be issued for.
    arguments.SetString(GRPC_ARG_DEFAULT_AUTHORITY, service_);
    channel = grpc::CreateCustomChannel(address, credentials_, arguments);
    channel->GetState(true);  // begins to connect before the first call
  }
  if (channels.empty()) return;
  channels_ = std::move(channels);
  auto list = std::make_shared<List>();
  for (const auto& [address, channel] : channels_) list->push_back(channel);
  list_.store(std::move(list));
}

std::shared_ptr<grpc::Channel> ServiceChannel::get() const {
  const auto list = list_.load();
  if (!list) return nullptr;
  const std::size_t first = next_.fetch_add(1, std::memory_order_relaxed);
  for (std::size_t i = 0; i < list->size(); ++i) {
    const auto& channel = (*list)[(first + i) % list->size()];
    if (channel->GetState(true) == GRPC_CHANNEL_READY) return channel;
  }
  return (*list)[first % list->size()];
}

bool ServiceChannel::wait_for_instances(std::chrono::milliseconds time) const {
  const auto end = std::chrono::steady_clock::now() + time;
  while (!get()) {
    if (std::chrono::steady_clock::now() >= end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  return true;
}

}  // namespace lookout_grpc
