#include "releases.h"

#include <lookout/controller/builder.h>
#include <lookout/controller/owner_references.h>
#include <lookout/k8s/apps/v1_draft.h>
#include <lookout/k8s/core/v1_draft.h>

#include <string>

namespace releases {
namespace {

using namespace lookout;
using k8s::apps::v1::Deployment;
using k8s::core::v1::ConfigMap;

std::string deployment_of(const ConfigMap& app) {
  return std::string(app.name()) + "-" + std::string(app.data()["release"]);
}

void deploy(controller::Context& context, const ConfigMap& app) {
  context.create_or_update<Deployment>(
      controller::Request(app.ns(), deployment_of(app)),
      [&](const k8s::apps::v1::DeploymentDraft& draft) {
        const std::string name = deployment_of(app);
        draft.spec().selector().match_labels().set("app", name);
        const auto pods = draft.spec().pod_template();
        pods.metadata().labels().set("app", name);
        pods.spec().containers().get_or_append("main").set_image(name);
      });
}

void note_active(controller::Context& context, const ConfigMap& app) {
  const auto change = app.edit();
  change.metadata().annotations().set(kActive, deployment_of(app));
  context.patch(change);
}

controller::Result reconcile_buggy(const controller::Request& request,
                                   controller::Context& context) {
  const auto app = context.find<ConfigMap>(request);
  if (!app || app->data()["release"].empty()) return {};
  const std::string active(app->annotations()[kActive].as_string());
  if (active == deployment_of(*app)) return {};  // nothing to do
  deploy(context, *app);
  note_active(context, *app);
  // If this write fails or does not happen, it is never repeated.
  if (const auto old = context.find<Deployment>(request.ns, active)) context.remove(*old);
  return {};
}

controller::Result reconcile(const controller::Request& request, controller::Context& context) {
  const auto app = context.find<ConfigMap>(request);
  if (!app || app->data()["release"].empty()) return {};
  deploy(context, *app);
  note_active(context, *app);
  // Depends on the existing objects, not on the steps of this run.
  for (const auto& one : context.list<Deployment>(request.ns)) {
    const auto owner = controller::controller_of(one);
    if (owner && owner->uid() == app->uid() && one.name() != deployment_of(*app))
      context.remove(one);
  }
  return {};
}

template <class Function>
void add(controller::Manager& manager, Function function) {
  controller::Builder<ConfigMap>(manager).owns<Deployment>().reconcile(function);
}

}  // namespace

void add_controller(controller::Manager& manager) { add(manager, reconcile); }
void add_buggy_controller(controller::Manager& manager) { add(manager, reconcile_buggy); }

}  // namespace releases
