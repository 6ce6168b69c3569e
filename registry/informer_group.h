// The informers of one kind of object in the namespaces that are looked at.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lookout/informer/shared_index_informer.h"
#include "lookout/registry/registry.h"
#include "lookout/rest/client.h"

namespace lookout::registry::detail {

struct InformerGroupOptions {
  api::Resource resource = {};
  /// As Options::all_namespaces().
  std::vector<std::string> namespaces = {};
  std::string label_selector = {};
  api::Projection projection = {};
  cache::Indexers indexers = {};
  BackoffOptions backoff = {};
  std::chrono::milliseconds sync_timeout{30'000};
};

using InformerPtr = std::shared_ptr<informer::SharedIndexInformer>;

/// One informer for each namespace, as one. They are made and started by the first start().
class InformerGroup {
 public:
  using MakeHandler = std::function<informer::EventHandler<api::Object>()>;

  InformerGroup(rest::Client client, InformerGroupOptions options,
                std::shared_ptr<informer::HandlerPool> pool);
  ~InformerGroup();

  /// Each informer gets a handler. Throws InvalidArgument if it is closed.
  void start(const MakeHandler& make_handler);
  std::vector<InformerPtr> informers() const;

  /// A handler has been told of everything that was there.
  void handler_synced() { handlers_synced_.fetch_add(1, std::memory_order_release); }
  /// Whether all that there was at first is in the stores.
  bool synced() const;
  /// Throws NotSynced, and InvalidArgument if it is closed or on the event loop.
  void wait_for_sync(const WaitOptions& wait) const;

  const std::shared_ptr<const FreshnessSource>& freshness() const { return freshness_; }

  /// Stops them. Returns them: they are waited for by who lets go of them last.
  std::vector<InformerPtr> close();

 private:
  class LiveSource;

  void check_open() const;

  const rest::Client client_;
  const InformerGroupOptions options_;
  const std::shared_ptr<informer::HandlerPool> pool_;
  const std::shared_ptr<LiveSource> live_;
  const std::shared_ptr<const FreshnessSource> freshness_;  // the same
  std::atomic<std::size_t> handlers_synced_{0};
  mutable std::atomic<bool> synced_{false};

  mutable std::mutex mutex_;
  bool started_ = false;  // guarded by mutex_, as below
  bool closed_ = false;
  std::vector<InformerPtr> informers_;
};

}  // namespace lookout::registry::detail
