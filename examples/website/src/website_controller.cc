#include "website_controller.h"

#include <fmt/format.h>
#include <lookout/base/labelled_metrics.h>
#include <lookout/controller/builder.h>
#include <lookout/controller/conditions.h>
#include <lookout/controller/owner_references.h>
#include <lookout/k8s/apps/v1_draft.h>
#include <lookout/k8s/core/v1_draft.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "website_types.h"

namespace website {
namespace {

using namespace lookout;
using k8s::apps::v1::Deployment;
using k8s::core::v1::ConfigMap;
using k8s::core::v1::Service;
using v1::Website;

constexpr std::string_view kFinalizer = "example.com/directory";
constexpr std::string_view kDirectory = "websites";
constexpr std::string_view kLabel = "example.com/website";
constexpr std::int32_t kDefaultPort = 80;

/// create_or_update() then throws controller::NotOwnedError for objects of other creators, and for
/// those of an earlier Website with the same name, which the garbage collector will delete.
controller::Ownership ours(const Website& site) {
  return controller::owned_by(site, controller::Orphans::kRefuse);
}

Deployment make_deployment(controller::Context& context, const Website& site) {
  const auto spec = site.spec();
  const auto result = context.create_or_update<Deployment>(
      context.request(), ours(site), [&](const k8s::apps::v1::DeploymentDraft& draft) {
        draft.spec().set_replicas(spec.replicas().value_or(1));
        draft.spec().selector().match_labels().set(kLabel, site.name());
        const auto pods = draft.spec().pod_template();
        pods.metadata().labels().set(kLabel, site.name());
        const auto container = pods.spec().containers().get_or_append("web");
        container.set_image(spec.image());
        // Changes an existing port in place, to keep the server's defaults.
        const auto ports = container.ports();
        const auto port = spec.port().value_or(kDefaultPort);
        (ports.size() == 0 ? ports.append(port) : ports[0]).set_container_port(port);
      });
  if (result.written == controller::Written::kCreated)
    context.event(site, "Created", "Created the deployment {}", site.name());
  return result.object;
}

void make_service(controller::Context& context, const Website& site) {
  const auto port = site.spec().port().value_or(kDefaultPort);
  context.create_or_update<Service>(
      context.request(), ours(site), [&](const k8s::core::v1::ServiceDraft& draft) {
        draft.spec().selector().set(kLabel, site.name());
        const auto ports = draft.spec().ports();
        (ports.size() == 0 ? ports.append(port) : ports[0]).set_port(port).set_target_port(port);
      });
}

std::string url_of(const Website& site) {
  return fmt::format("http://{}.{}.svc:{}", site.name(), site.ns(),
                     site.spec().port().value_or(kDefaultPort));
}

/// Patches one entry, so that concurrent changes of other websites do not conflict.
void enter_directory(controller::Context& context, const Website& site, const std::string& url) {
  const auto directory = context.find<ConfigMap>(site.ns(), kDirectory);
  if (directory && directory->data()[site.name()] == url) return;
  const auto draft = directory ? directory->edit() : ConfigMap::draft(kDirectory, site.ns());
  draft.data().set(site.name(), url);
  if (directory) {
    context.patch(draft);
  } else {
    context.create(draft);
  }
}

/// Reads the directory from the server: the cache may not have the entry yet, and after the finalizer
/// is removed, there is no further reconciliation.
void leave_directory(controller::Context& context, const Website& site) {
  const auto directories = context.uncached().resource<ConfigMap>(site.ns());
  const ConfigMap directory = directories.find(kDirectory);
  if (!directory) return;
  const auto draft = directory.edit();
  draft.data().erase(site.name());
  context.patch(draft);
}

/// Writes the status. Sends no request if nothing has changed.
void report(controller::Context& context, const Website& site, const std::string& url,
            std::int32_t ready, const controller::Condition& condition) {
  const auto change = site.edit();
  change.status().set_url(url).set_ready_replicas(ready);
  controller::set_condition(change, condition);
  context.patch_status(change);
}

controller::Condition condition_of(controller::ConditionStatus status, std::string reason,
                                   std::string message = {}) {
  controller::Condition out;
  out.type = "Ready";
  out.status = status;
  out.reason = std::move(reason);
  out.message = std::move(message);
  return out;
}

controller::Result reconcile(const controller::Request& request, controller::Context& context) {
  const auto site = context.find<Website>(request);
  if (!site) return {};
  // The garbage collector deletes the owned objects. Only this controller can remove the entry.
  if (context.finalize(*site, kFinalizer, [&] { leave_directory(context, *site); })) return {};

  const std::string url = url_of(*site);
  try {
    const Deployment deployment = make_deployment(context, *site);
    make_service(context, *site);
    enter_directory(context, *site, url);

    const auto wanted = site->spec().replicas().value_or(1);
    const auto ready = deployment.status().ready_replicas().value_or(0);
    report(context, *site, url, ready,
           ready >= wanted
               ? condition_of(controller::ConditionStatus::kTrue, "AllReady")
               : condition_of(controller::ConditionStatus::kFalse, "Progressing",
                              fmt::format("{} of {} replicas are ready", ready, wanted)));
  } catch (const controller::NotOwnedError& e) {
    report(context, *site, url, 0,
           condition_of(controller::ConditionStatus::kFalse, "NameTaken", e.what()));
    context.warning(*site, "NameTaken", "{}", e.what());
    throw;  // retried with backoff
  }
  return {};
}

/// The number of websites, read from the cache for each scrape.
class WebsiteMetrics : public metrics::Source {
 public:
  explicit WebsiteMetrics(const controller::Cache& cache) : cache_(cache) {}

  void collect(std::vector<metrics::Sample>& out) const override {
    if (!cache_.unsynced().empty()) return;
    const auto sites = cache_.view().list<Website>();
    const auto ready = std::ranges::count_if(
        sites, [](const Website& site) { return controller::is_condition_true(site, "Ready"); });
    metrics::Collector(out, {{"ready", "true"}})
        .gauge("websites", "Websites by readiness.", static_cast<double>(ready));
    metrics::Collector(out, {{"ready", "false"}})
        .gauge("websites", "Websites by readiness.",
               static_cast<double>(sites.size()) - static_cast<double>(ready));
  }

 private:
  const controller::Cache& cache_;
};

}  // namespace

void add_website_controller(controller::Manager& manager) {
  // Caches only the ConfigMaps that are directories.
  controller::KindOptions directories;
  directories.field_selector = fmt::format("metadata.name={}", kDirectory);
  manager.cache().declare<ConfigMap>(directories);

  manager.add_metrics(std::make_shared<WebsiteMetrics>(manager.cache()));
  const auto conflicts = metrics::CounterVec::create(
      "website_conflicts_total", "Reconciles that found a name taken.", {"namespace"});
  manager.add_metrics(conflicts);
  const auto counted = [conflicts](const controller::Request& request,
                                   controller::Context& context) -> controller::Result {
    try {
      return reconcile(request, context);
    } catch (const controller::NotOwnedError&) {
      conflicts->with({request.ns})->add();
      throw;
    }
  };

  controller::Builder<Website>(manager)
      .owns<Deployment>()
      .owns<Service>()
      .watches<ConfigMap>([](const ConfigMap& directory, controller::Enqueue& enqueue) {
        // Called for the old and the new state, so a removed entry is restored.
        for (const auto& [name, url] : directory.data())
          enqueue(controller::Request(directory.ns(), name));
      })
      .concurrency(4)
      .reconcile(counted);
}

}  // namespace website
