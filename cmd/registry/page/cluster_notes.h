// Notes about a real registry.
#pragma once

#include <memory>
#include <optional>

#include "cmd/registry/flags.h"
#include "cmd/registry/page/malformed_pods.h"
#include "cmd/registry/page/notes.h"
#include "cmd/registry/page/pod_follower.h"
#include "cmd/registry/page/scraper.h"
#include "lookout/registry/informer_discovery.h"
#include "lookout/rest/client.h"

namespace lookout::cmd::registry_cmd {

/// Collects all that a page shows beside the services. For the style "services", whose instances
/// may be no pods, pods are not followed.
class ClusterNotes {
 public:
  ClusterNotes(const rest::Client& client, const Flags& flags);

  /// For registry::Options::on_malformed.
  void report(const registry::Malformed& malformed) { malformed_.report(malformed); }
  /// They refer to this, which must outlive them.
  NoteSources sources(std::shared_ptr<registry::InformerDiscovery> discovery);

 private:
  std::vector<Problem> problems(const registry::InformerDiscovery& discovery);
  std::vector<Problem> malformed();

  const bool kratos_;
  MalformedPods malformed_;
  std::optional<PodFollower> pods_;
  std::optional<Scraper> scraper_;  // after pods_, which it asks for targets
};

}  // namespace lookout::cmd::registry_cmd
