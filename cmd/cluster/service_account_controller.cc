#include "cmd/cluster/controllers.h"
#include "cmd/cluster/names.h"
#include "lookout/api/status.h"
#include "lookout/controller/builder.h"
#include "lookout/controller/finalizers.h"
#include "lookout/k8s/core/v1_draft.h"

namespace lookout::cmd::cluster {

using k8s::core::v1::Namespace;

void add_service_account_controller(controller::Manager& manager) {
  controller::Builder<Namespace>(manager)
      .watches<ServiceAccount>([](const ServiceAccount& account, Enqueue& enqueue) {
        if (account.name() == "default") enqueue(Request("", account.ns()));
      })
      .named("serviceaccount")
      .reconcile([](const Request& request, Context& context) {
        const auto ns = context.find<Namespace>(request);
        const bool stays = ns && !controller::is_being_deleted(*ns);
        if (!stays || context.find<ServiceAccount>(request.name, "default"))
          return controller::done();
        try {
          context.create(ServiceAccount::draft("default", request.name));
        } catch (const api::StatusError& e) {
          // A server with the admission plugin ServiceAccount creates it, too.
          if (!api::is_already_exists(e)) throw;
        }
        return controller::done();
      });
}

}  // namespace lookout::cmd::cluster
