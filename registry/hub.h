// Hub: the common part of all discovery backends, between informers and watchers.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
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
#include "registry/in_order.h"
#include "registry/informer_group.h"
#include "registry/user_side.h"
#include "registry/watcher_core.h"

namespace lookout::registry::detail {

/// Reads a backend's instances from objects. Pure functions, called on any thread.
class InstanceReader {
 public:
  virtual ~InstanceReader() = default;

  /// The services of the object: the values of the index.
  virtual void services_of(const api::Object& object, cache::IndexValues& services) const = 0;
  /// Whether lists of services include the name.
  virtual bool is_listed(std::string_view service) const;
  /// Appends the object's instances of `service`. False: its announcement is unreadable.
  virtual bool read(const api::Object& object, std::string_view service,
                    std::vector<InstancePtr>& instances) const = 0;
  /// For an unreadable object: appends what is left of the instances of its last readable version.
  /// The default appends nothing.
  virtual void keep(const api::Object& object, const std::vector<InstancePtr>& last,
                    std::vector<InstancePtr>& instances) const;
  /// Why the object is malformed; nullopt if it is not.
  virtual std::optional<std::string> defect(const api::Object& object) const = 0;
  /// Merges two objects' data of one instance. Both have the same key.
  virtual InstancePtr merged(const InstancePtr& a, const InstancePtr& b) const;
  /// Removes or replaces instances of a service, once all of its objects have been read and merged.
  /// Keeps their order.
  virtual void choose(std::vector<InstancePtr>& instances) const;
};

/// The index of InstanceReader::services_of().
inline constexpr std::string_view kServiceIndex = "registry-service";
/// The value for objects whose services cannot be read. It is not the name of a service.
inline constexpr std::string_view kUnreadable = "\nunreadable";

/// The objects to watch.
struct HubSource {
  api::Resource resource;
  std::string label_selector;
  api::Projection projection;
  std::shared_ptr<const InstanceReader> reader;
};

class Channel;

/// Watches the objects, and publishes the sets of the watched services.
///
/// An event marks its services as changed. A task on a pool recomputes marked services that are
/// watched, one after the other, from the current stores. A service that is marked several times
/// before is recomputed once.
///
/// None of this waits for user code, which runs on other threads.
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
  std::vector<Malformed> malformed() const;
  DiscoveryStats stats() const;
  void close();

 private:
  friend class Channel;

  void start();
  void end();
  std::shared_ptr<Channel> channel(const std::string& service);
  std::vector<std::shared_ptr<Channel>> channels() const;
  void forget_channel(const std::string& service);
  std::shared_ptr<WatcherCore> add_watcher(const std::shared_ptr<Channel>& channel);
  Subscription subscribe(const std::string& service, SetCallback callback,
                         const std::shared_ptr<informer::HandlerPool>& pool);
  InformerGroupEvents events();
  informer::EventHandler<api::Object> handler();
  void report(const WatchFailure& failure, bool repeated);
  void mark(const api::Object& object);
  void mark_all();
  void mark_locked(const std::vector<std::shared_ptr<Channel>>& channels);
  void flush();
  /// Returns the memory that only the first list needed to the system.
  void give_memory_back() const;
  void check(const api::Object& object, const api::Object* before);
  void forget_malformed(const api::Object& object);
  std::uint64_t next_version() { return version_.fetch_add(1, std::memory_order_relaxed) + 1; }

  const rest::Client client_;
  const HubSource source_;
  const Options options_;
  const std::shared_ptr<informer::HandlerPool> pool_;  // for tasks that never block
  const UserSide user_;
  InformerGroup group_;
  std::atomic<std::uint64_t> version_{0};
  std::atomic<std::uint64_t> malformed_count_{0};
  std::atomic<std::uint64_t> computed_{0};
  std::atomic<std::uint64_t> announced_{0};

  mutable std::mutex mutex_;
  // All guarded by mutex_.
  bool closed_ = false;
  std::unordered_map<std::string, std::weak_ptr<Channel>> channels_;
  InOrder<std::shared_ptr<Channel>> marked_;
  bool flushing_ = false;

  mutable std::mutex malformed_mutex_;
  std::map<std::string, Malformed> malformed_;  // by key; guarded by malformed_mutex_
};

}  // namespace lookout::registry::detail
