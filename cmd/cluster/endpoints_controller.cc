#include <algorithm>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "cmd/cluster/bursts.h"
#include "cmd/cluster/controllers.h"
#include "cmd/cluster/names.h"
#include "cmd/cluster/pods.h"
#include "cmd/cluster/services.h"
#include "lookout/controller/builder.h"
#include "lookout/controller/finalizers.h"
#include "lookout/k8s/core/v1_draft.h"

namespace lookout::cmd::cluster {
namespace {

using k8s::core::v1::EndpointsDraft;

constexpr const char* kEndpointsManagedBy = "endpoints.kubernetes.io/managed-by";
constexpr const char* kEndpointsManager = "endpoint-controller";
constexpr const char* kOverCapacity = "endpoints.kubernetes.io/over-capacity";
/// The maximum number of addresses in an Endpoints object.
constexpr std::size_t kMostAddresses = 1000;

/// The addresses with the same ports.
struct Subset {
  std::vector<Pod> ready;
  std::vector<Pod> not_ready;
};
using Subsets = std::map<BackendPorts, Subset>;

Subsets subsets_of(const Service& service, std::string_view family, Context& context) {
  const bool always = service.spec().publish_not_ready_addresses().value_or(false);
  Subsets out;
  for (const Pod& pod : backends_of(service, context)) {
    if (controller::is_being_deleted(pod) && !always) continue;
    if (address_in(pod, family).empty()) continue;
    auto ports = ports_in(pod, service);
    // Only a headless service may have no ports.
    if (ports.empty() && !(service.spec().ports().empty() && is_headless(service))) continue;
    Subset& subset = out[std::move(ports)];
    (always || is_ready(pod) ? subset.ready : subset.not_ready).push_back(pod);
  }
  return out;
}

/// Drops the last addresses beyond the limit, unready ones first. Returns true if there were any.
bool limit_addresses(Subsets& subsets) {
  std::size_t room = kMostAddresses;
  bool truncated = false;
  const auto shorten = [&](std::vector<Pod>& pods) {
    truncated = truncated || pods.size() > room;
    pods.erase(pods.begin() + static_cast<std::ptrdiff_t>(std::min(room, pods.size())), pods.end());
    room -= pods.size();
  };
  for (auto& [ports, subset] : subsets) shorten(subset.ready);
  for (auto& [ports, subset] : subsets) shorten(subset.not_ready);
  return truncated;
}

void set_addresses(const api::DraftPart& list, std::vector<Pod> pods, std::string_view family,
                   const Service& service) {
  if (pods.empty()) return;
  std::sort(pods.begin(), pods.end(), [&](const Pod& a, const Pod& b) {
    return address_in(a, family) < address_in(b, family);
  });
  for (const Pod& pod : pods) {
    const auto out = list.append();
    out["ip"].set(address_in(pod, family));
    describe_backend(out, pod, service);
  }
}

void fill_endpoints(const EndpointsDraft& draft, const Service& service, Context& context) {
  const auto labels = draft.metadata().labels();
  labels.clear();
  for (const auto& [name, value] : service.labels().members()) labels.set(name, value.as_string());
  labels.set(kEndpointsManagedBy, kEndpointsManager);
  if (is_headless(service)) {
    labels.set(kHeadless, "");
  } else {
    labels.erase(kHeadless);
  }
  const std::string family = families_of(service).front();
  Subsets subsets = subsets_of(service, family, context);
  if (limit_addresses(subsets)) {
    draft.metadata().annotations().set(kOverCapacity, "truncated");
  } else if (draft.metadata().annotations().contains(kOverCapacity)) {
    draft.metadata().annotations().erase(kOverCapacity);
  }
  if (!subsets.empty() || draft["subsets"]) draft["subsets"].set_empty_list();
  for (const auto& [ports, subset] : subsets) {
    if (subset.ready.empty() && subset.not_ready.empty()) continue;
    const auto out = draft["subsets"].append();
    set_addresses(out["addresses"], subset.ready, family, service);
    set_addresses(out["notReadyAddresses"], subset.not_ready, family, service);
    if (!ports.empty()) set_ports(out["ports"], ports, false);
  }
}

Result reconcile_endpoints(const Request& request, Context& context) {
  const auto service = context.find<Service>(request);
  const auto present = context.find<Endpoints>(request);
  if (!service) {
    if (present) context.remove(*present);
    return {};
  }
  if (controller::is_being_deleted(*service) || !has_managed_endpoints(*service)) return {};
  if (present) {
    const auto change = present->edit();
    fill_endpoints(change, *service, context);
    context.patch(change);
  } else {
    const auto draft = Endpoints::draft(service->name(), service->ns());
    fill_endpoints(draft, *service, context);
    try {
      context.create(draft);
    } catch (const api::StatusError& e) {
      if (!is_in_ending_namespace(e)) throw;
    }
  }
  return {};
}

}  // namespace

void add_endpoints_controller(controller::Manager& manager) {
  controller::Builder<Service>(manager)
      .watches<Pod>(
          [&manager](const Pod& pod, Enqueue& enqueue) { enqueue_services(manager, pod, enqueue); })
      // Endpoints that others have written stay, unless their service is deleted.
      .watches<Endpoints>([](const Endpoints& endpoints, Enqueue& enqueue) {
        if (endpoints.labels()[kEndpointsManagedBy].as_string() == kEndpointsManager)
          enqueue(Request(endpoints.ns(), endpoints.name()));
      })
      .named("endpoint")
      .options(expect_bursts)
      .reconcile(reconcile_endpoints);
}

}  // namespace lookout::cmd::cluster
