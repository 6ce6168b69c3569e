// ClusterNotes: notes about a registry in a cluster.
#pragma once

#include <memory>
#include <optional>

#include "cmd/registry/flags.h"
#include "cmd/registry/page/notes.h"
#include "cmd/registry/page/pod_follower.h"
#include "cmd/registry/page/scraper.h"
#include "lookout/registry/informer_discovery.h"
#include "lookout/rest/client.h"

namespace lookout::cmd::registry_cmd {

/// Collects the facts that a page shows beside the services. Does not follow pods for the style
/// "services", whose instances may not be pods.
class ClusterNotes {
 public:
  ClusterNotes(const rest::Client& client, const Flags& flags);

  /// The sources refer to this object, which must outlive them.
  NoteSources sources(std::shared_ptr<registry::InformerDiscovery> discovery);

 private:
  std::vector<Problem> problems(const registry::InformerDiscovery& discovery);
  std::vector<Problem> malformed(const registry::InformerDiscovery& discovery) const;

  std::optional<PodFollower> pods_;
  std::optional<Scraper> scraper_;  // after pods_, which provides its targets
};

}  // namespace lookout::cmd::registry_cmd
