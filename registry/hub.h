// The common part of all discovery backends: informers behind, watchers in front.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lookout/api/projection.h"
#include "lookout/api/resource.h"
#include "lookout/informer/shared_index_informer.h"
#include "lookout/registry/options.h"
#include "lookout/registry/registry.h"
#include "lookout/rest/client.h"
#include "registry/call_queue.h"
#include "registry/in_order.h"
#include "registry/informer_group.h"
#include "registry/user_calls.h"
#include "registry/watcher_core.h"

namespace lookout::registry::detail {

/// How a backend reads instances from objects. Pure functions, called from any thread.
class InstanceReader {
 public:
  virtual ~InstanceReader() = default;

  /// The services that the object has to do with: the values of the index.
  virtual void services_of(const api::Object& object, cache::IndexValues& services) const = 0;
  /// Whether the name is one for lists of services, not only one to ask for.
  virtual bool is_listed(std::string_view service) const;
  /// Appends the instances of `service` that the object stands for. What is malformed has none.
  virtual void read(const api::Object& object, std::string_view service,
                    std::vector<InstancePtr>& instances) const = 0;
  /// Why the object cannot be read; nothing if it can.
  virtual std::optional<std::string> defect(const api::Object& object) const = 0;
  /// Puts what several objects say of one instance together; both have the same key.
  virtual InstancePtr merged(const InstancePtr& a, const InstancePtr& b) const;
};

/// The index that InstanceReader::services_of() makes.
inline constexpr std::string_view kServiceIndex = "registry-service";

/// The objects to watch.
struct HubSource {
  api::Resource resource;
  std::string label_selector;
  api::Projection projection;
  std::shared_ptr<const InstanceReader> reader;
};

class Channel;

/// Follows the objects, and publishes the sets of those services that somebody follows.
///
/// An event marks the services that it touches. Marked services that are followed are computed anew
/// from the store, one after the other, by one task at a time on a pool: however many events came
/// in between, each is computed once, and always from the newest state.
///
/// Nothing of that waits for user code, which has threads of its own.
class Hub : public std::enable_shared_from_this<Hub> {
 public:
  Hub(rest::Client client, HubSource source, const Options& options);
  ~Hub();

  InstanceSetPtr get(const std::string& service, const WaitOptions& wait);
  InstanceSetPtr latest(const std::string& service);
  std::vector<std::string> services(const WaitOptions& wait);
  Watcher watch(const std::string& service);
  Subscription subscribe(const std::string& service, SetCallback callback);
  Subscription follow(const std::string& service, SetCallback callback);
  Freshness freshness() const;
  std::vector<WatchFailure> failures() const { return group_.failures(); }
  DiscoveryStats stats() const;
  void close();

 private:
  friend class Channel;

  void start();
  void end();
  std::shared_ptr<Channel> channel(const std::string& service);
  void forget_channel(const std::string& service);
  std::shared_ptr<WatcherCore> add_watcher(const std::shared_ptr<Channel>& channel);
  Subscription subscribe(const std::string& service, SetCallback callback,
                         const std::shared_ptr<informer::HandlerPool>& pool);
  InformerGroupEvents events();
  informer::EventHandler<api::Object> handler();
  void report(const WatchFailure& failure);
  void mark(const api::Object& object);
  void mark_all();
  void mark_locked(const std::vector<std::shared_ptr<Channel>>& channels);
  void flush();
  /// Returns the memory that only the first list needed to the system.
  void give_memory_back() const;
  void check(const api::Object& object, const api::Object* before);
  std::uint64_t next_version() { return version_.fetch_add(1, std::memory_order_relaxed) + 1; }

  const rest::Client client_;
  const HubSource source_;
  const Options options_;
  const std::shared_ptr<informer::HandlerPool> pool_;  // of what never blocks
  const std::shared_ptr<informer::HandlerPool> user_pool_;
  const std::shared_ptr<UserCalls> calls_;
  const std::shared_ptr<CallQueue> malformed_reports_;
  const std::shared_ptr<CallQueue> failure_reports_;
  InformerGroup group_;
  std::atomic<std::uint64_t> version_{0};
  std::atomic<std::uint64_t> malformed_{0};
  std::atomic<std::uint64_t> computed_{0};
  std::atomic<std::uint64_t> announced_{0};

  mutable std::mutex mutex_;
  // All guarded by mutex_.
  bool closed_ = false;
  std::unordered_map<std::string, std::weak_ptr<Channel>> channels_;
  InOrder<std::shared_ptr<Channel>> marked_;
  bool flushing_ = false;
};

}  // namespace lookout::registry::detail
