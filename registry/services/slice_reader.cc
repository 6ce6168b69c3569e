#include "registry/services/slice_reader.h"

#include <fmt/format.h>

#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>

#include "lookout/base/numbers.h"
#include "lookout/k8s/discovery/v1.h"
#include "lookout/registry/services/registry.h"

namespace lookout::registry::services {
namespace {

std::string protocol_of(const k8s::discovery::v1::EndpointPort& port) {
  // "kubernetes.io/h2c", "example.com/rpc": drop the domain.
  std::string_view protocol = port.app_protocol();
  protocol.remove_prefix(protocol.rfind('/') + 1);
  if (!protocol.empty()) return std::string(protocol);
  const std::string_view name = port.name();
  if (!name.empty()) return std::string(name.substr(0, name.find('-')));
  return std::string(port.protocol().empty() ? "TCP" : port.protocol());
}

/// The state of an endpoint in a slice. The greatest of several states counts: that of the slice that
/// was written last, and within one slice, one that can be called.
struct EndpointState {
  std::uint64_t version = 0;  // the slice's resourceVersion
  bool ready = false;
  bool leaves = false;  // it terminates, but still serves

  friend auto operator<=>(const EndpointState&, const EndpointState&) = default;
};

/// The instances of a SliceReader, until choose() has selected those that are announced.
struct SliceInstance : ServiceInstance {
  bool is_pod = false;                      // otherwise, only the address is known
  bool united = false;                      // from several entries
  std::vector<std::string> addresses = {};  // one for each entry
  EndpointState state = {};                 // counts if there are no endpoints
  std::vector<EndpointState> states = {};   // of each of `endpoints`
};

/// `instance` comes from SliceReader::read() or merged().
const SliceInstance& details(const InstancePtr& instance) {
  return static_cast<const SliceInstance&>(*instance);
}

bool is_ready(const k8s::discovery::v1::Endpoint& endpoint) {
  const auto conditions = endpoint.conditions();
  return conditions.ready().value_or(true) && !conditions.terminating().value_or(false);
}

bool serves_to_the_end(const k8s::discovery::v1::Endpoint& endpoint) {
  const auto conditions = endpoint.conditions();
  return conditions.terminating().value_or(false) && conditions.serving().value_or(true);
}

void add_endpoint(SliceInstance& instance, Endpoint endpoint, const EndpointState& state) {
  const auto known = std::ranges::find(instance.endpoints, endpoint);
  if (known == instance.endpoints.end()) {
    instance.endpoints.push_back(std::move(endpoint));
    instance.states.push_back(state);
    return;
  }
  auto& before = instance.states[static_cast<std::size_t>(known - instance.endpoints.begin())];
  before = std::max(before, state);
}

/// Two entries of one instance.
SliceInstance unite(const SliceInstance& a, const SliceInstance& b) {
  const bool b_counts = a.state < b.state;
  SliceInstance out = b_counts ? b : a;
  const SliceInstance& other = b_counts ? a : b;
  out.united = true;
  if (!out.is_pod && other.is_pod) {
    out.is_pod = true;
    out.id = other.id;
    out.origin = other.origin;
  }
  for (std::size_t i = 0; i < other.endpoints.size(); ++i)
    add_endpoint(out, other.endpoints[i], other.states[i]);
  out.addresses.insert(out.addresses.end(), other.addresses.begin(), other.addresses.end());
  out.metadata.insert(other.metadata.begin(), other.metadata.end());
  if (out.zone.empty()) out.zone = other.zone;
  return out;
}

/// One slice may name an endpoint's pod, and another one only its address. (Pods in the network of
/// their node share an address: then it says nothing.)
void give_addresses_to_pods(std::vector<InstancePtr>& instances) {
  constexpr auto kSeveral = static_cast<std::size_t>(-1);
  const auto pods = std::ranges::count_if(
      instances, [](const InstancePtr& instance) { return details(instance).is_pod; });
  if (pods == 0 || pods == std::ssize(instances)) return;
  std::unordered_map<std::string_view, std::size_t> pod_at;
  for (std::size_t i = 0; i < instances.size(); ++i) {
    const SliceInstance& pod = details(instances[i]);
    if (!pod.is_pod) continue;
    for (const std::string& address : pod.addresses) {
      const auto [it, first] = pod_at.emplace(address, i);
      if (!first && it->second != i) it->second = kSeveral;
    }
  }
  std::map<std::size_t, SliceInstance> united;  // the keys of pod_at refer to `instances`
  for (InstancePtr& instance : instances) {
    const SliceInstance& entry = details(instance);
    if (entry.is_pod) continue;
    const auto found = pod_at.find(entry.addresses.front());
    if (found == pod_at.end() || found->second == kSeveral) continue;
    auto& pod = united.try_emplace(found->second, details(instances[found->second])).first->second;
    pod = unite(pod, entry);
    instance = nullptr;
  }
  for (auto& [i, pod] : united)
    instances[i] = std::make_shared<const SliceInstance>(std::move(pod));
  std::erase(instances, nullptr);
}

/// An endpoint has one instance and one state, even if slices disagree about its pod: the address
/// of a pod that has ended may belong to a new one.
class Owners {
 public:
  explicit Owners(const std::vector<InstancePtr>& instances) {
    if (instances.size() < 2) return;
    for (const InstancePtr& instance : instances) {
      const SliceInstance& one = details(instance);
      for (std::size_t i = 0; i < one.endpoints.size(); ++i)
        claim(one, one.endpoints[i], one.states[i]);
    }
  }

  /// Null if the endpoint belongs to another instance.
  const EndpointState* state(const SliceInstance& instance, std::size_t endpoint) const {
    if (claims_.empty()) return &instance.states[endpoint];
    const Claim& found = claims_.at(instance.endpoints[endpoint].text());
    return found.owner == &instance ? &found.state : nullptr;
  }

 private:
  struct Claim {
    const SliceInstance* owner;
    EndpointState owners;  // what the owner's slices say
    EndpointState state;   // what the newest slice says
  };

  void claim(const SliceInstance& instance, const Endpoint& endpoint, const EndpointState& state) {
    const auto [it, first] = claims_.try_emplace(endpoint.text(), Claim{&instance, state, state});
    if (first) return;
    Claim& known = it->second;
    known.state = std::max(known.state, state);
    const bool takes =
        instance.is_pod != known.owner->is_pod ? instance.is_pod : known.owners < state;
    if (!takes) return;
    known.owner = &instance;
    known.owners = state;
  }

  std::unordered_map<std::string_view, Claim> claims_;
};

/// Whether an endpoint is called.
bool is_served(const EndpointState* state, bool any_ready) {
  return state != nullptr && (state->ready || (!any_ready && state->leaves));
}

bool any_is_ready(const SliceInstance& instance, const Owners& owners) {
  if (instance.endpoints.empty()) return instance.state.ready;
  for (std::size_t i = 0; i < instance.endpoints.size(); ++i) {
    if (is_served(owners.state(instance, i), true)) return true;
  }
  return false;
}

/// The instance with the endpoints that are called. If none is: null, or with `unready`, the
/// instance as it is.
InstancePtr announced(const InstancePtr& instance, const Owners& owners, bool any_ready,
                      bool unready) {
  const SliceInstance& all = details(instance);
  std::vector<Endpoint> endpoints;
  bool owns = all.endpoints.empty();
  for (std::size_t i = 0; i < all.endpoints.size(); ++i) {
    const EndpointState* const state = owners.state(all, i);
    owns = owns || state != nullptr;
    if (is_served(state, any_ready)) endpoints.push_back(all.endpoints[i]);
  }
  const bool ready = all.endpoints.empty() ? is_served(&all.state, any_ready) : !endpoints.empty();
  // (An address without a pod that belongs to a pod is no instance of its own.)
  if (!ready && (!unready || (!owns && !all.is_pod))) return nullptr;
  if (!ready) endpoints = all.endpoints;
  if (!all.united && ready == all.ready && endpoints.size() == all.endpoints.size())
    return instance;
  ServiceInstance out = all;
  out.ready = ready;
  out.endpoints = std::move(endpoints);
  // Slices are unordered.
  if (all.united) std::ranges::sort(out.endpoints);
  return std::make_shared<const ServiceInstance>(std::move(out));
}

}  // namespace

const api::Projection& SliceReader::projection() {
  static const auto kProjection =
      api::Projection::keep({"metadata.labels['kubernetes.io/service-name']", "endpoints.addresses",
                             "endpoints.conditions", "endpoints.hostname", "endpoints.nodeName",
                             "endpoints.zone", "endpoints.targetRef.kind",
                             "endpoints.targetRef.name", "endpoints.targetRef.namespace", "ports"});
  return kProjection;
}

void SliceReader::services_of(const api::Object& slice, cache::IndexValues& services) const {
  const std::string_view name = slice.labels()[kServiceNameLabel].as_string();
  if (name.empty()) return;
  if (qualified_) {
    services.add(fmt::format("{}/{}", slice.ns(), name));
  } else {
    services.add(name);
  }
}

bool SliceReader::read(const api::Object& object, std::string_view,
                       std::vector<InstancePtr>& instances) const {
  const k8s::discovery::v1::EndpointSlice slice(object);
  const auto version =
      base::parse_number<std::uint64_t>(object.resource_version()).value_or(std::uint64_t{0});
  for (const auto endpoint : slice.endpoints()) {
    if (endpoint.addresses().empty()) continue;
    // Those that are not ready, too: another slice may still say that they are.
    const EndpointState state{version, is_ready(endpoint), serves_to_the_end(endpoint)};
    SliceInstance instance;
    instance.name = object.labels()[kServiceNameLabel].as_string();
    instance.ready = state.ready;
    instance.state = state;
    instance.zone = endpoint.zone();
    // An endpoint's addresses are interchangeable; kube-proxy uses the first, too.
    const std::string_view address = endpoint.addresses()[0];
    instance.addresses.emplace_back(address);
    const auto target = endpoint.target_ref();
    if (target.kind() == "Pod" && !target.name().empty()) {
      instance.is_pod = true;
      instance.id = target.name();
      const std::string_view ns = target.namespace_();
      instance.origin = fmt::format("{}/{}", ns.empty() ? object.ns() : ns, target.name());
    } else {
      instance.id = address;
      instance.origin = fmt::format("{}/{}", object.ns(), address);
    }
    if (!endpoint.node_name().empty()) instance.metadata["node"] = endpoint.node_name();
    if (!endpoint.hostname().empty()) instance.metadata["hostname"] = endpoint.hostname();
    for (const auto port : slice.ports()) {
      if (!port.port()) continue;  // "all ports" is not an endpoint
      if (*port.port() < 1 || *port.port() > 65535) continue;
      add_endpoint(instance,
                   Endpoint(protocol_of(port), address, static_cast<std::uint16_t>(*port.port())),
                   state);
    }
    instances.push_back(std::make_shared<const SliceInstance>(std::move(instance)));
  }
  return true;
}

InstancePtr SliceReader::merged(const InstancePtr& a, const InstancePtr& b) const {
  return std::make_shared<const SliceInstance>(unite(details(a), details(b)));
}

void SliceReader::choose(std::vector<InstancePtr>& instances) const {
  give_addresses_to_pods(instances);
  const Owners owners(instances);
  const bool any_ready = std::ranges::any_of(instances, [&](const InstancePtr& instance) {
    return any_is_ready(details(instance), owners);
  });
  std::vector<InstancePtr> out;
  out.reserve(instances.size());
  for (const InstancePtr& instance : instances) {
    if (auto one = announced(instance, owners, any_ready, include_unready_))
      out.push_back(std::move(one));
  }
  instances = std::move(out);
}

}  // namespace lookout::registry::services
