// The informers of one kind of object in the namespaces that are looked at.
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

/// The namespaces, without repetitions; one empty name if kAllNamespaces is among them.
std::vector<std::string> each_once(std::vector<std::string> namespaces);

struct InformerGroupOptions {
  LOOKOUT_OPTION api::Resource resource = {};
  /// As each_once() gives them.
  LOOKOUT_OPTION std::vector<std::string> namespaces = {};
  LOOKOUT_OPTION std::string label_selector = {};
  LOOKOUT_OPTION api::Projection projection = {};
  LOOKOUT_OPTION cache::Indexers indexers = {};
  BackoffOptions backoff = {};
  std::chrono::milliseconds sync_timeout{30'000};
};

/// The callbacks of the owner of a group. They run on the threads of informers and must not block.
struct InformerGroupEvents {
  /// For each informer. The group knows of it when `on_synced` is called.
  std::function<informer::EventHandler<api::Object>()> make_handler;
  std::function<void(const WatchFailure&)> failed;
  /// InformerGroup::synced() may have become true, or another namespace has come in.
  std::function<void()> synced;
};

/// One informer for each namespace, as one. They are made and started by the first start().
class InformerGroup {
 public:
  InformerGroup(rest::Client client, InformerGroupOptions options,
                std::shared_ptr<informer::HandlerPool> pool);
  ~InformerGroup();

  /// `make_events` is called by the first only. Throws InvalidArgument if it is closed.
  void start(const std::function<InformerGroupEvents()>& make_events);
  std::vector<InformerPtr> informers() const;

  /// Whether all that there was at first is in the stores; what the server refuses to tell is not
  /// waited for, as long as something is there.
  bool synced() const { return state_->synced(); }
  /// Waits until it is, or until the handlers have been told of it as well. Throws NotSynced if the
  /// time is over, and as soon as the server has refused all of it; InvalidArgument if it is closed
  /// or on the event loop.
  void wait_for_sync(const WaitOptions& wait, Synced what = Synced::kStores) const;

  std::vector<WatchFailure> failures() const { return state_->failures(); }
  std::shared_ptr<const FreshnessSource> freshness() const { return state_; }

  /// Stops them. Returns them: they are waited for by who lets go of them last.
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
