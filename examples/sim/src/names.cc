#include "names.h"

#include <lookout/controller/builder.h>
#include <lookout/k8s/core/v1_draft.h>

namespace names {
namespace {

using namespace lookout;
using k8s::core::v1::Pod;
using k8s::core::v1::Service;

bool terminates(const Pod& pod) { return pod.metadata().deletion_timestamp().has_value(); }

void make_name(controller::Context& context) {
  const auto& [ns, name] = context.request();
  if (context.find<Service>(context.request())) return;
  const auto draft = Service::draft(name, ns);
  draft.metadata().labels().set(kPodLabel, name);
  draft.spec().set_cluster_ip("None").selector().set(kPodLabel, name);
  context.create(draft);
}

void release_name(controller::Context& context) {
  if (const auto service = context.find<Service>(context.request())) context.remove(*service);
}

controller::Result reconcile_buggy(const controller::Request& request,
                                   controller::Context& context) {
  const auto pod = context.find<Pod>(request);
  if (!pod) return {};  // it has terminated, so its name was released before
  if (terminates(*pod)) {
    release_name(context);
  } else {
    make_name(context);
  }
  return {};
}

controller::Result reconcile(const controller::Request& request, controller::Context& context) {
  const auto pod = context.find<Pod>(request);
  // Some states are never observed. A pod that does not exist needs no name, whatever was observed.
  if (!pod || terminates(*pod)) {
    release_name(context);
  } else {
    make_name(context);
  }
  return {};
}

template <class Function>
void add(controller::Manager& manager, Function function) {
  controller::Builder(manager)
      .named("names")
      .template watches<Pod>([](const Pod& pod, controller::Enqueue& enqueue) {
        enqueue(controller::Request(pod.ns(), pod.labels()[kPodLabel]));
      })
      // Finds the names of pods that were deleted while this program did not run.
      .template watches<Service>([](const Service& service, controller::Enqueue& enqueue) {
        enqueue(controller::Request(service.ns(), service.labels()[kPodLabel]));
      })
      .reconcile(function);
}

}  // namespace

void add_controller(controller::Manager& manager) { add(manager, reconcile); }
void add_buggy_controller(controller::Manager& manager) { add(manager, reconcile_buggy); }

}  // namespace names
