// Cluster: a cluster besides the manager's own.
#pragma once

#include <string>

#include "lookout/base/attributes.h"
#include "lookout/controller/cache.h"
#include "lookout/rest/client.h"

namespace lookout::controller {

/// A client and caches of another cluster; controller-runtime's cluster.Cluster. The manager to
/// which it is added starts, watches and ends the caches together with its own.
///
///     const auto west = std::make_shared<controller::Cluster>("west", client_of_west);
///     manager.add(west);
///     controller::Builder<Website>(manager)
///         .watches<Secret>(map, {.cluster = west})
///         .reconcile([west](Request request, controller::Context& context)
///                        -> controller::Result {
///           const auto secret = context.view(*west).find<Secret>(request);
///           context.uncached(*west).resource<ConfigMap>("shop").create(draft);
///
/// All functions may be called from any thread.
class Cluster {
 public:
  /// `name`: for logs, /readyz/caches/NAME and the label "cluster" of its metrics. The client needs
  /// the event loop of the manager's: rest::Client(config, manager.client().shared_loop()). Throws
  /// InvalidArgument if the name is empty or has a slash.
  Cluster(std::string name, rest::Client client, CacheOptions options = {});
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  const std::string& name() const LOOKOUT_LIFETIME_BOUND { return name_; }
  const rest::Client& client() const LOOKOUT_LIFETIME_BOUND { return client_; }
  /// Declare kinds and add indexes as in the manager's cache.
  Cache& cache() const LOOKOUT_LIFETIME_BOUND { return cache_; }

 private:
  const std::string name_;
  const rest::Client client_;
  mutable Cache cache_;
};

}  // namespace lookout::controller
