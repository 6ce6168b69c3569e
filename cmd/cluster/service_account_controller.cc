#include "cmd/cluster/controllers.h"
#include "lookout/api/status.h"
#include "lookout/controller/builder.h"
#include "lookout/controller/finalizers.h"
#include "lookout/k8s/core/v1_draft.h"

namespace lookout::cmd::cluster {
namespace {

using k8s::core::v1::Namespace;
using k8s::core::v1::ServiceAccount;

}  // namespace

void add_service_account_controller(controller::Manager& manager) {
  controller::Builder<Namespace>(manager)
      .watches<ServiceAccount>([](const ServiceAccount& account, controller::Enqueue& enqueue) {
        if (account.name() == "default") enqueue(controller::Request("", account.ns()));
      })
      .named("serviceaccount")
      .reconcile([](const controller::Request& request, controller::Context& context) {
        const auto ns = context.find<Namespace>(request);
        const bool stays = ns && !controller::is_being_deleted(*ns);
        if (stays && !context.find<ServiceAccount>(request.name, "default"))
          context.create(ServiceAccount::draft("default", request.name));
        return controller::done();
      });
}

}  // namespace lookout::cmd::cluster
