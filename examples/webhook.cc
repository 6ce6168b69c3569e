// Webhooks for a custom resource: defaults, validation, and conversion from an older version.
// docs/guide/webhooks.md explains the code. The argument is the folder with tls.crt and tls.key.
#include "lookout/controller/webhook.h"

#include <fmt/format.h>

#include <chrono>
#include <cstdint>
#include <exception>
#include <string>
#include <string_view>

#include "lookout/controller/manager.h"
#include "lookout/controller/signals.h"
#include "lookout/k8s/core/v1.h"
#include "lookout/lookout.h"

using namespace lookout;
using namespace std::chrono_literals;

namespace {

struct Website : api::TypedObject {
  using TypedObject::TypedObject;
  static constexpr api::ResourceType kResource{"example.com", "v1", "Website", "websites", true};
  std::string_view image() const { return (*this)["spec"]["image"].as_string(); }
};

/// The older version, in which the image was called "site".
struct OldWebsite : api::TypedObject {
  using TypedObject::TypedObject;
  static constexpr api::ResourceType kResource{"example.com", "v1alpha1", "Website", "websites",
                                               true};
};

void set_defaults(const controller::Admission<Website>& request, api::ObjectDraft& draft) {
  const auto replicas = request.object["spec"]["replicas"];
  if (!replicas.exists()) draft["spec"]["replicas"].set(1);
}

controller::AdmissionResponse check(const controller::Admission<Website>& request) {
  if (request.operation == controller::Operation::kDelete) return controller::allowed();
  if (request.object.image().empty()) return controller::denied("spec.image is required");
  if (request.old_object && request.old_object.image() != request.object.image())
    return controller::allowed().warn("a new image restarts the website");
  return controller::allowed();
}

Awaitable<controller::AdmissionResponse> check_use(const rest::Client& client,
                                                   const controller::Admission<Website>& request) {
  const auto maps = client.resource<k8s::core::v1::ConfigMap>(request.ns);
  const auto keep = co_await maps.async_find("keep-" + request.name);
  if (keep) co_return controller::denied("a ConfigMap says that it is to be kept");
  co_return controller::allowed();
}

}  // namespace

int main(int argc, char** argv) try {
  const rest::Client client{rest::Config::load()};
  controller::ManagerOptions manager_options;
  manager_options.health_listen = ":8081";
  controller::Manager manager{client, manager_options};

  controller::WebhookOptions options;
  options.cert_dir = argc > 1 ? argv[1] : "/certs";
  options.drain_delay = 5s;
  controller::WebhookServer webhooks{manager, options};
  manager.add_ready_check("webhooks", webhooks.started_checker());

  webhooks.mutate<Website>(set_defaults);
  webhooks.validate<Website>(check);
  webhooks.validate<Website>("/validate-deletion",
                             [&client](const controller::Admission<Website>& request) {
                               return check_use(client, request);
                             });
  webhooks.convert<Website, OldWebsite>(
      [](const OldWebsite& from, auto& to) { to["spec"]["image"].set(from["spec"]["site"]); },
      [](const Website& from, auto& to) { to["spec"]["site"].set(from["spec"]["image"]); });

  manager.run(controller::stop_on_signals());
} catch (const std::exception& e) {
  fmt::print(stderr, "{}\n", e.what());
  return 1;
}
