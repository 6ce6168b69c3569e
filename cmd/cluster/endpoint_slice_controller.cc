#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cmd/cluster/bursts.h"
#include "cmd/cluster/controllers.h"
#include "cmd/cluster/names.h"
#include "cmd/cluster/pods.h"
#include "cmd/cluster/services.h"
#include "lookout/api/labels.h"
#include "lookout/controller/builder.h"
#include "lookout/controller/finalizers.h"
#include "lookout/controller/owner_references.h"
#include "lookout/k8s/discovery/v1_draft.h"

namespace lookout::cmd::cluster {
namespace {

using k8s::discovery::v1::EndpointSliceDraft;

constexpr const char* kServiceName = "kubernetes.io/service-name";
constexpr const char* kManagedBy = "endpointslice.kubernetes.io/managed-by";
constexpr const char* kManager = "endpointslice-controller.k8s.io";
constexpr const char* kZone = "topology.kubernetes.io/zone";
/// The maximum number of endpoints in a slice.
constexpr std::size_t kMostInSlice = 100;

/// Pods by name.
using PodsByName = std::map<std::string, Pod, std::less<>>;

/// A slice as it shall be.
struct WantedSlice {
  std::optional<EndpointSlice> present;  ///< empty for a new one
  std::string family;
  BackendPorts ports;
  std::vector<Pod> pods;
};

BackendPorts ports_of(const EndpointSlice& slice) {
  BackendPorts out;
  for (const auto port : slice.ports()) {
    out.push_back({.name = std::string(port.name()),
                   .port = port.port().value_or(0),
                   .protocol = std::string(port.protocol()),
                   .app_protocol = std::string(port.app_protocol())});
  }
  return out;
}

/// One reconcile of the slices of a service. An endpoint stays in its slice. The endpoints of a slice
/// have the same ports.
class ServiceSlices {
 public:
  ServiceSlices(Service service, Context& context)
      : service_(std::move(service)),
        context_(context),
        pods_(backends_of(service_, context)),
        present_(context.list<EndpointSlice>(
            service_.ns(),
            api::labels::from_set({{kServiceName, service_.name()}, {kManagedBy, kManager}}))) {
    std::sort(present_.begin(), present_.end(),
              [](const auto& a, const auto& b) { return a.name() < b.name(); });
    // The slices of an earlier service of this name.
    const auto others = std::stable_partition(
        present_.begin(), present_.end(),
        [&](const EndpointSlice& slice) { return controller::is_controlled_by(slice, service_); });
    std::move(others, present_.end(), std::back_inserter(surplus_));
    present_.erase(others, present_.end());
  }

  void step() {
    const auto families = families_of(service_);
    for (const std::string& family : families) arrange(family);
    for (const EndpointSlice& slice : present_) {
      if (std::find(families.begin(), families.end(), slice.address_type()) == families.end())
        surplus_.push_back(slice);
    }
    for (const WantedSlice& slice : wanted_) write(slice);
    for (const EndpointSlice& slice : surplus_) context_.remove(slice);
  }

 private:
  /// Assigns the endpoints of a family to slices.
  void arrange(const std::string& family) {
    std::map<BackendPorts, PodsByName> groups;
    for (const Pod& pod : pods_) {
      if (!address_in(pod, family).empty())
        groups[ports_in(pod, service_)].emplace(pod.name(), pod);
    }
    std::vector<WantedSlice> out;
    std::vector<EndpointSlice> spare;
    for (const EndpointSlice& slice : present_) {
      if (slice.address_type() != family) continue;
      WantedSlice kept{.present = slice, .family = family, .ports = ports_of(slice), .pods = {}};
      if (const auto group = groups.find(kept.ports); group != groups.end())
        kept.pods = take_known(slice, group->second);
      if (kept.pods.empty()) {
        spare.push_back(slice);
      } else {
        out.push_back(std::move(kept));
      }
    }
    for (auto& [ports, pods] : groups) place(pods, ports, family, out);
    // A service without endpoints has an empty slice.
    if (out.empty()) out.push_back({.present = {}, .family = family, .ports = {}, .pods = {}});
    for (WantedSlice& slice : out) {
      if (slice.present || spare.empty()) continue;
      slice.present = std::move(spare.back());
      spare.pop_back();
    }
    std::move(out.begin(), out.end(), std::back_inserter(wanted_));
    std::move(spare.begin(), spare.end(), std::back_inserter(surplus_));
  }

  /// Removes the pods of the slice from `pods` and returns them, in the order of the slice.
  static std::vector<Pod> take_known(const EndpointSlice& slice, PodsByName& pods) {
    std::vector<Pod> out;
    for (const auto endpoint : slice.endpoints()) {
      const auto pod = pods.find(endpoint.target_ref().name());
      if (pod == pods.end() || pod->second.uid() != endpoint.target_ref().uid()) continue;
      out.push_back(std::move(pod->second));
      pods.erase(pod);
    }
    return out;
  }

  /// Adds the pods to slices that have room, the fullest first, and to new ones.
  static void place(PodsByName& pods, const BackendPorts& ports, const std::string& family,
                    std::vector<WantedSlice>& slices) {
    const auto has_room = [&](const WantedSlice& slice) {
      return slice.ports == ports && slice.pods.size() < kMostInSlice;
    };
    while (!pods.empty()) {
      WantedSlice* fullest = nullptr;
      for (WantedSlice& slice : slices) {
        if (has_room(slice) && (fullest == nullptr || slice.pods.size() > fullest->pods.size()))
          fullest = &slice;
      }
      if (fullest == nullptr) {
        slices.push_back({.present = {}, .family = family, .ports = ports, .pods = {}});
        fullest = &slices.back();
      }
      while (!pods.empty() && fullest->pods.size() < kMostInSlice) {
        fullest->pods.push_back(std::move(pods.begin()->second));
        pods.erase(pods.begin());
      }
    }
  }

  void write(const WantedSlice& slice) {
    if (slice.present) {
      const auto change = slice.present->edit();
      fill(change, slice);
      context_.patch(change);
      return;
    }
    const auto draft = EndpointSlice::draft("", service_.ns());
    draft.metadata().set_generate_name(fmt::format("{}-", service_.name()));
    draft["addressType"].set(slice.family);
    fill(draft, slice);
    try {
      context_.create(draft);
    } catch (const api::StatusError& e) {
      if (!is_in_ending_namespace(e)) throw;
    }
  }

  void fill(const EndpointSliceDraft& draft, const WantedSlice& slice) {
    const auto labels = draft.metadata().labels();
    labels.clear();
    for (const auto& [name, value] : service_.labels().members()) {
      if (name != kHeadless) labels.set(name, value.as_string());
    }
    labels.set(kServiceName, service_.name());
    labels.set(kManagedBy, kManager);
    if (is_headless(service_)) labels.set(kHeadless, "");
    set_ports(draft["ports"], slice.ports, true);
    draft["endpoints"].set_empty_list();
    for (const Pod& pod : slice.pods) set_endpoint(draft["endpoints"].append(), pod, slice.family);
  }

  void set_endpoint(const api::DraftPart& out, const Pod& pod, const std::string& family) {
    const bool serving = is_ready(pod);
    const bool terminating = controller::is_being_deleted(pod);
    const bool always = service_.spec().publish_not_ready_addresses().value_or(false);
    out["addresses"].append().set(address_in(pod, family));
    out["conditions"]["ready"].set(always || (serving && !terminating));
    out["conditions"]["serving"].set(serving);
    out["conditions"]["terminating"].set(terminating);
    describe_backend(out, pod, service_);
    if (const auto node = context_.find<Node>("", pod.spec().node_name())) {
      const std::string_view zone = node->labels()[kZone].as_string();
      if (!zone.empty()) out["zone"].set(zone);
    }
  }

  const Service service_;
  Context& context_;
  const std::vector<Pod> pods_;
  std::vector<EndpointSlice> present_;  // by name; owned by this service
  std::vector<WantedSlice> wanted_;
  std::vector<EndpointSlice> surplus_;
};

Result reconcile_slices(const Request& request, Context& context) {
  auto service = context.find<Service>(request);
  // (A deleted service takes its slices along.)
  if (service && !controller::is_being_deleted(*service) && has_managed_endpoints(*service))
    ServiceSlices(*std::move(service), context).step();
  return {};
}

}  // namespace

void add_endpoint_slice_controller(controller::Manager& manager) {
  controller::Builder<Service>(manager)
      .owns<EndpointSlice>()
      .watches<Pod>(
          [&manager](const Pod& pod, Enqueue& enqueue) { enqueue_services(manager, pod, enqueue); })
      .watches<Node>([](const Node&, Enqueue&) {})  // for their zones
      .named("endpointslice")
      .options(expect_bursts)
      .reconcile(reconcile_slices);
}

}  // namespace lookout::cmd::cluster
