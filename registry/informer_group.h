// InformerGroup: the informers of one resource in several namespaces.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lookout/base/attributes.h"
#include "lookout/informer/shared_index_informer.h"
#include "lookout/registry/options.h"
#include "lookout/registry/registry.h"
#include "lookout/rest/client.h"
#include "registry/group_state.h"

namespace lookout::registry::detail {

/// The namespaces without duplicates; one empty name if they include kAllNamespaces.
std::vector<std::string> each_once(std::vector<std::string> namespaces);

struct InformerGroupOptions {
  LOOKOUT_OPTION api::Resource resource = {};
  /// As returned by each_once().
  LOOKOUT_OPTION std::vector<std::string> namespaces = {};
  LOOKOUT_OPTION std::string label_selector = {};
  LOOKOUT_OPTION api::Projection projection = {};
  LOOKOUT_OPTION cache::Indexers indexers = {};
  BackoffOptions backoff = {};
  std::chrono::milliseconds sync_timeout{30'000};
};

/// Callbacks to the owner of a group. They run on informer threads and must not block.
struct InformerGroupEvents {
  /// Creates each informer's handler. The group calls its on_synced, too.
  std::function<informer::EventHandler<api::Object>()> make_handler;
  /// A list or watch failed. `repeated`: in the same way as shortly before, which informers do not
  /// log again.
  std::function<void(const WatchFailure&, bool repeated)> failed;
  /// InformerGroup::synced() may have become true, or another namespace has synced.
  std::function<void()> synced;
};

/// The default of Options::on_error: logs a warning, or a repetition at debug level.
void log_failure(const api::Resource& resource, const WatchFailure& failure, bool repeated);

/// One informer per namespace. The first start() creates and starts them.
class InformerGroup {
 public:
  InformerGroup(rest::Client client, InformerGroupOptions options,
                std::shared_ptr<informer::HandlerPool> pool);
  ~InformerGroup();

  /// Only the first call calls `make_events`. Throws InvalidArgument if the group is closed.
  void start(const std::function<InformerGroupEvents()>& make_events);
  std::vector<InformerPtr> informers() const;

  /// Whether the stores have all initial objects. Namespaces that the server refuses are ignored if
  /// another one has synced.
  bool synced() const { return state_->synced(); }
  /// Waits until the group has synced, with kHandlers also its handlers. Throws NotSynced on timeout
  /// and if the server refuses all namespaces; InvalidArgument if the group is closed, and on threads
  /// of the event loop.
  void wait_for_sync(const WaitOptions& wait, Synced what = Synced::kStores) const;

  std::vector<WatchFailure> failures() const { return state_->failures(); }
  std::shared_ptr<const FreshnessSource> freshness() const { return state_; }

  /// Stops and returns the informers. Releasing the last reference to one waits for its handlers.
  std::vector<InformerPtr> close();

 private:
  const rest::Client client_;
  const InformerGroupOptions options_;
  const std::shared_ptr<informer::HandlerPool> pool_;
  const std::shared_ptr<GroupState> state_;

  mutable std::mutex mutex_;
  bool started_ = false;  // guarded by mutex_, as below
  bool closed_ = false;
  std::vector<InformerPtr> informers_;
};

}  // namespace lookout::registry::detail
