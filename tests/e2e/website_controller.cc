// A typical controller program: creates a Deployment and a ConfigMap for each site.
// controller_replicas_test runs several replicas, and kills, freezes and disconnects them.
//
// usage: website_controller SERVER CA_FILE TOKEN IDENTITY LEASE_MS websites|replicasets
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <exception>
#include <span>
#include <string>

#include "lookout/controller/builder.h"
#include "lookout/controller/manager.h"
#include "lookout/controller/signals.h"
#include "lookout/k8s/apps/v1_draft.h"
#include "lookout/k8s/core/v1_draft.h"
#include "lookout/rest/client.h"
#include "tests/e2e/website.h"

namespace lookout::test {
namespace {

using controller::Context;
using controller::Request;
using controller::Result;
using k8s::apps::v1::Deployment;
using k8s::core::v1::ConfigMap;

/// Identifies the writer.
class Writer {
 public:
  Writer(const controller::Manager& manager, std::string identity)
      : manager_(manager), identity_(std::move(identity)) {}

  std::string stamp() {
    const auto leadership = manager_.leadership();
    return fmt::format("{} {} {}", identity_, leadership ? leadership->fencing_token() : -1,
                       ++writes_);
  }
  void sign(const auto& draft) {
    if (draft.changed()) draft.metadata().annotations().set(kWriter, stamp());
  }

 private:
  const controller::Manager& manager_;
  const std::string identity_;
  std::atomic<std::uint64_t> writes_{0};
};

/// Deletes a child of the site. The cache of a new leader may lack the last writes of the previous
/// one, so this reads from the server.
template <class Child>
void remove_child(Context& context, const Request& request) {
  const auto child = context.uncached().resource<Child>(request.ns).find(request.name);
  if (child) context.remove(child);
}

template <class Site>
Result reconcile(const Request& request, Context& context, Writer& writer) {
  const auto site = context.find<Site>(request);
  if (!site) return {};
  const auto clean_up = [&] {
    remove_child<Deployment>(context, request);
    remove_child<ConfigMap>(context, request);
  };
  if (context.finalize(*site, kFinalizer, clean_up)) return {};

  context.create_or_update<ConfigMap>(request, [&](const auto& page) {
    page.data().set("page", fmt::format("{} x{}", image_of(*site), replicas_of(*site)));
    writer.sign(page);
  });
  const auto web = context.create_or_update<Deployment>(request, [&](const auto& draft) {
    draft.spec().set_replicas(replicas_of(*site));
    draft.spec().selector().match_labels().set("website", request.name);
    draft.spec().pod_template().metadata().labels().set("website", request.name);
    draft.spec().pod_template().spec().containers().get_or_append("web").set_image(image_of(*site));
    writer.sign(draft);
  });

  const auto change = site->edit();
  change["status"]["replicas"].set(web.object.spec().replicas().value_or(0));
  change["status"]["observedGeneration"].set(site->metadata().generation().value_or(0));
  context.patch_status(change);
  return {};
}

template <class Site>
void add_controller(controller::Manager& manager, Writer& writer) {
  controller::Builder<Site>(manager)
      .template owns<Deployment>()
      .template owns<ConfigMap>()
      .concurrency(4)
      .reconcile([&writer](const Request& request, Context& context) {
        return reconcile<Site>(request, context, writer);
      });
}

int run(std::span<char*> arguments) {
  rest::Config config;
  config.server = arguments[0];
  config.ca_file = arguments[1];
  config.bearer_token = arguments[2];
  const std::chrono::milliseconds lease(std::atoi(arguments[4]));

  controller::LeaderElection election;
  election.name = kLease;
  election.ns = "default";
  election.identity = arguments[3];
  election.lease_duration = lease;
  election.renew_deadline = lease * 2 / 3;
  election.retry_period = lease / 10;
  controller::ManagerOptions options;
  options.leader_election = election;
  options.cache.namespaces = {"default"};
  options.on_shutdown_overrun = [] { std::_Exit(kLostLease); };
  controller::Manager manager{rest::Client{config}, options};
  Writer writer(manager, election.identity);
  if (std::string_view(arguments[5]) == "websites") {
    add_controller<Website>(manager, writer);
  } else {
    add_controller<ReplicaSet>(manager, writer);
  }
  try {
    manager.run(controller::stop_on_signals());
  } catch (const controller::LeaderElectionLostError& e) {
    fmt::print("{}\n", e.what());
    return kLostLease;
  }
  return 0;
}

}  // namespace
}  // namespace lookout::test

int main(int argc, char** argv) try {
  const std::span<char*> arguments(argv + 1, static_cast<std::size_t>(argc > 1 ? argc - 1 : 0));
  if (arguments.size() != 6) return 2;
  return lookout::test::run(arguments);
} catch (const std::exception& e) {
  fmt::print("{}\n", e.what());
  return 1;
}
