// Claims: a workload adopts the objects that its selector matches, and releases those that it no longer matches.
#pragma once

#include "lookout/api/labels.h"
#include "lookout/api/status.h"
#include "lookout/controller/context.h"
#include "lookout/controller/finalizers.h"
#include "lookout/controller/manager.h"
#include "lookout/controller/owner_references.h"
#include "lookout/controller/source.h"
#include "lookout/k8s/meta/v1.h"

namespace lookout::cmd::cluster {

inline api::labels::Selector selector_of(const api::Object& owner) {
  return api::labels::from(k8s::meta::v1::LabelSelector(owner["spec"]["selector"]));
}

/// Makes `owner` the controller of the objects that its selector matches and that have none, and lets go
/// of its own that the selector no longer matches. Returns true if any object changes; its event will
/// reconcile the owner again. The rules are those of kube-controller-manager's ControllerRefManager.
template <api::ResourceObject Owned, api::ResourceObject Owner>
bool claim(const Owner& owner, controller::Context& context) {
  const auto selector = selector_of(owner);
  bool changes = false;
  bool checked = false;
  for (const Owned& object : context.list<Owned>(owner.ns())) {
    const auto of = controller::controller_of(object);
    const bool matches = selector.matches(object);
    const bool is_own = of && of->uid() == owner.uid();
    if (controller::is_being_deleted(object) || (of ? !is_own || matches : !matches)) continue;
    if (!of && !checked) {
      // Objects must not be adopted, and then deleted with an owner that is being deleted already.
      const Owner live = context.uncached().resource<Owner>(owner.ns()).find(owner.name());
      if (!live || live.uid() != owner.uid() || controller::is_being_deleted(live)) return changes;
      checked = true;
    }
    const auto change = object.edit();
    if (is_own) {
      controller::remove_owner_reference(owner, change);
    } else {
      controller::set_controller_reference(owner, change);
    }
    rest::PatchOptions options;
    options.if_unchanged = true;
    try {
      context.patch(change, options);
    } catch (const api::StatusError& e) {
      // The cache is stale, so an event follows.
      if (!api::is_conflict(e) && !api::is_not_found(e)) throw;
    }
    changes = true;
  }
  return changes;
}

/// Enqueues the owners that may adopt an object without a controller.
template <api::ResourceObject Owner>
void enqueue_adopters(controller::Manager& manager, const api::Object& object,
                      controller::Enqueue& enqueue) {
  if (controller::controller_of(object)) return;
  for (const Owner& owner : manager.cache().view().list<Owner>(object.ns())) {
    if (selector_of(owner).matches(object)) enqueue({owner.ns(), owner.name()});
  }
}

}  // namespace lookout::cmd::cluster
