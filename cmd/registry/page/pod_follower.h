// The facts about pods that instances do not have.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cmd/registry/page/notes.h"
#include "cmd/registry/page/scrape_target.h"
#include "lookout/informer/shared_index_informer.h"
#include "lookout/rest/client.h"

namespace lookout::cmd::registry_cmd {

/// Follows pods: which are leaving, why others are not ready, and where they say that their
/// metrics are. Safe to use from any thread.
class PodFollower {
 public:
  /// `ns`: empty for all namespaces.
  PodFollower(const rest::Client& client, const std::string& ns, const std::string& label_selector);
  ~PodFollower();
  PodFollower(const PodFollower&) = delete;
  PodFollower& operator=(const PodFollower&) = delete;

  /// Never null; the same as before if nothing has changed.
  PodFactsPtr facts() const;
  bool has(const std::string& pod) const;
  /// Whether the pods are at least as new as this resourceVersion.
  bool has_reached(std::string_view resource_version) const;
  /// The value of a label of a pod; empty if either is not there.
  std::string label(const std::string& pod, std::string_view name) const;
  /// The pods that ask to be scraped, in no order.
  std::vector<ScrapeTarget> scrape_targets() const;
  /// Why pods cannot be followed; empty if they are.
  std::string failure() const;

 private:
  class Facts;
  const std::shared_ptr<Facts> facts_;
  const std::shared_ptr<informer::HandlerPool> pool_;
  informer::SharedIndexInformer informer_;
  informer::HandlerRegistration registration_;
};

}  // namespace lookout::cmd::registry_cmd
