// The state of pods, as far as it is not in the registry's instances.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "cmd/registry/page/notes.h"
#include "cmd/registry/page/scrape_target.h"
#include "lookout/base/pinned.h"
#include "lookout/informer/shared_index_informer.h"
#include "lookout/rest/client.h"

namespace lookout::cmd::registry_cmd {

/// Watches pods: which are terminating, why others are not ready, and where their metrics are.
/// Thread-safe.
class PodFollower : public base::Pinned {
 public:
  /// `ns`: empty for all namespaces.
  PodFollower(const rest::Client& client, const std::string& ns, const std::string& label_selector);
  ~PodFollower();

  /// Never null; the same pointer as before if nothing has changed.
  PodFactsPtr facts() const;
  /// The value of a pod's label; empty if the pod or the label does not exist.
  std::string label(const std::string& pod, std::string_view name) const;
  /// The pods with scrape annotations, in no particular order.
  std::vector<ScrapeTarget> scrape_targets() const;
  /// Why the pods cannot be watched; empty if they can.
  std::string failure() const;

 private:
  class Facts;
  const std::shared_ptr<Facts> facts_;
  const std::shared_ptr<informer::HandlerPool> pool_;
  informer::SharedIndexInformer informer_;
  informer::HandlerRegistration registration_;
};

}  // namespace lookout::cmd::registry_cmd
