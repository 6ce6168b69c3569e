#include "claims.h"

#include <lookout/controller/builder.h>
#include <lookout/k8s/apps/v1.h>
#include <lookout/k8s/core/v1_draft.h>

namespace claims {
namespace {

using namespace lookout;
using k8s::apps::v1::StatefulSet;
using k8s::core::v1::PersistentVolumeClaim;

void make_claim(controller::Context& context) {
  const auto& [ns, name] = context.request();
  const auto draft = PersistentVolumeClaim::draft("data-" + name, ns);
  draft.metadata().labels().set(kSetLabel, name);
  draft.spec().access_modes().append("ReadWriteOnce");
  draft.spec().resources().requests().set("storage", "1Gi");
  context.create(draft);
}

controller::Result reconcile_buggy(const controller::Request& request,
                                   controller::Context& context) {
  const auto set = context.find<StatefulSet>(request);
  const auto claim = context.find<PersistentVolumeClaim>(request.ns, "data-" + request.name);
  if (set && !claim) make_claim(context);
  if (!set && claim) context.remove(*claim);
  return {};
}

controller::Result reconcile(const controller::Request& request, controller::Context& context) {
  const auto set = context.find<StatefulSet>(request);
  const auto claim = context.find<PersistentVolumeClaim>(request.ns, "data-" + request.name);
  if (set && !claim) make_claim(context);
  if (!set && claim) {
    // The cache may be older than it was before a restart: ask the server before deleting data.
    const auto sets = context.uncached().resource<StatefulSet>(request.ns);
    if (!sets.find(request.name)) context.remove(*claim);
  }
  return {};
}

template <class Function>
void add(controller::Manager& manager, Function function) {
  controller::Builder<StatefulSet>(manager)
      .watches<PersistentVolumeClaim>(
          [](const PersistentVolumeClaim& claim, controller::Enqueue& enqueue) {
            enqueue(controller::Request(claim.ns(), claim.labels()[kSetLabel]));
          })
      .reconcile(function);
}

}  // namespace

void add_controller(controller::Manager& manager) { add(manager, reconcile); }
void add_buggy_controller(controller::Manager& manager) { add(manager, reconcile_buggy); }

}  // namespace claims
