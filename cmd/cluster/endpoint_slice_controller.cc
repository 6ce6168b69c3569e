#include <fmt/format.h>

#include <string>
#include <string_view>
#include <vector>

#include "cmd/cluster/bursts.h"
#include "cmd/cluster/controllers.h"
#include "cmd/cluster/names.h"
#include "cmd/cluster/pods.h"
#include "lookout/api/labels.h"
#include "lookout/controller/builder.h"
#include "lookout/controller/finalizers.h"
#include "lookout/k8s/discovery/v1_draft.h"

namespace lookout::cmd::cluster {
namespace {

using k8s::core::v1::ServicePort;
using k8s::discovery::v1::EndpointSliceDraft;

constexpr const char* kServiceName = "kubernetes.io/service-name";
/// The maximum number of endpoints in a slice.
constexpr std::size_t kMost = 1000;

bool selects(const Service& service, const Pod& pod) {
  const api::Value selector = service["spec"]["selector"];
  if (!selector.is_object() || selector.empty()) return false;
  for (const auto& [name, value] : selector.members()) {
    if (pod.labels()[name].as_string() != value.as_string()) return false;
  }
  return true;
}

/// The number of a service's port in a pod: a number, or the name of a container's port.
std::int32_t port_in(const Pod& pod, const ServicePort& port) {
  const auto target = port.target_port();
  if (!target) return port.port();
  if (target.is_int()) return target.int_value();
  for (const auto container : pod.spec().containers()) {
    for (const auto one : container.ports()) {
      if (one.name() == target.string_value()) return one.container_port();
    }
  }
  return 0;
}

void set_ports(const EndpointSliceDraft& slice, const Service& service, const Pod& example) {
  slice["ports"].set_empty_list();
  for (const auto port : service.spec().ports()) {
    const std::int32_t number = port_in(example, port);
    if (number == 0) continue;
    const auto out = slice["ports"].append();
    out["name"].set(port.name());
    out["port"].set(number);
    out["protocol"].set(port.protocol().empty() ? "TCP" : port.protocol());
  }
}

void set_endpoints(const EndpointSliceDraft& slice, const std::vector<Pod>& pods) {
  slice["endpoints"].set_empty_list();
  for (const Pod& pod : pods) {
    const bool terminating = controller::is_being_deleted(pod);
    const auto out = slice["endpoints"].append();
    out["addresses"].append().set(pod.status().pod_ip());
    out["conditions"]["ready"].set(is_ready(pod) && !terminating);
    out["conditions"]["serving"].set(is_ready(pod));
    out["conditions"]["terminating"].set(terminating);
    out["nodeName"].set(pod.spec().node_name());
    out["targetRef"]["kind"].set("Pod");
    out["targetRef"]["name"].set(pod.name());
    out["targetRef"]["namespace"].set(pod.ns());
    out["targetRef"]["uid"].set(pod.uid());
  }
}

Result reconcile_slices(const Request& request, Context& context) {
  const auto service = context.find<Service>(request);
  if (!service || controller::is_being_deleted(*service) || (*service)["spec"]["selector"].empty())
    return {};
  std::vector<Pod> pods;
  for (Pod& pod : context.list<Pod>(service->ns())) {
    const std::string_view phase = pod.status().phase();
    if (pods.size() < kMost && selects(*service, pod) && !pod.status().pod_ip().empty() &&
        phase != "Succeeded" && phase != "Failed")
      pods.push_back(std::move(pod));
  }
  const auto fill = [&](const EndpointSliceDraft& slice) {
    slice.metadata().labels().set(kServiceName, service->name());
    slice.metadata().labels().set("endpointslice.kubernetes.io/managed-by",
                                  "endpointslice-controller.k8s.io");
    slice["addressType"].set("IPv4");
    set_ports(slice, *service, pods.empty() ? Pod() : pods.front());
    set_endpoints(slice, pods);
  };
  const auto slices = context.list<EndpointSlice>(
      service->ns(), api::labels::from_set({{kServiceName, service->name()}}));
  for (const EndpointSlice& slice : slices) {
    const auto owner = controller::controller_of(slice);
    if (!owner || owner->uid() != service->uid()) continue;
    const auto change = slice.edit();
    fill(change);
    context.patch(change);
    return {};
  }
  const auto slice = EndpointSlice::draft("", service->ns());
  slice.metadata().set_generate_name(fmt::format("{}-", service->name()));
  fill(slice);
  context.create(slice);
  return {};
}

}  // namespace

void add_endpoint_slice_controller(controller::Manager& manager) {
  controller::Builder<Service>(manager)
      .owns<EndpointSlice>()
      .watches<Pod>([&manager](const Pod& pod, Enqueue& enqueue) {
        for (const Service& service : manager.cache().view().list<Service>(pod.ns())) {
          if (selects(service, pod)) enqueue(Request(service.ns(), service.name()));
        }
      })
      .named("endpointslice")
      .options(expect_bursts)
      .reconcile(reconcile_slices);
}

}  // namespace lookout::cmd::cluster
