// The objects of one resource in etcd: k8s.io/apiserver/pkg/storage/etcd3/store.go.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apiserver/storage/etcd3/context.h"
#include "apiserver/storage/etcd3/lease_manager.h"
#include "apiserver/storage/etcd3/range_pages.h"
#include "apiserver/storage/etcd3/watcher.h"
#include "lookout/apiserver/storage/interface.h"

namespace lookout::apiserver::storage::etcd3 {

/// The watch that feeds a cache.
class FeedingWatch : public Watch {
 public:
  /// Whether the etcd member of the events responds.
  virtual Awaitable<bool> is_served() = 0;
  /// Requests a bookmark after etcd's current state; false if that is not supported. Thread-safe.
  virtual bool request_progress() = 0;
};

/// Every operation is a request to etcd, and sees the latest write of any server.
class Store final : public Interface {
 public:
  Store(std::shared_ptr<const Context> context, std::shared_ptr<LeaseManager> leases,
        std::chrono::seconds ttl);

  const std::string& prefix() const override { return context_->prefix; }
  Awaitable<api::Object> create(std::string key, api::Object object) override;
  Awaitable<api::Object> get(std::string key, Revision not_older_than) override;
  Awaitable<ListResult> list(std::string key, bool recursive, ListOptions options) override;
  Awaitable<api::Object> guaranteed_update(std::string key, bool create_if_absent,
                                           Preconditions preconditions, Update update) override;
  Awaitable<api::Object> remove(std::string key, Preconditions preconditions,
                                Validate validate) override;
  Awaitable<std::unique_ptr<Watch>> watch(std::string key, bool recursive,
                                          WatchOptions options) override;
  Awaitable<Revision> current_revision() override;
  Awaitable<std::size_t> count() override;

  /// Like guaranteed_update() and remove(), but starting with a cached state (or an empty object).
  /// Reads the state only if it is out of date.
  Awaitable<api::Object> update_from(api::Object cached, std::string key, bool create_if_absent,
                                     Preconditions preconditions, Update update);
  Awaitable<api::Object> remove_from(api::Object cached, std::string key,
                                     Preconditions preconditions, Validate validate);

  /// All objects at one revision, sorted by (relative) key.
  using TakeItem = std::function<void(std::string key, api::Object object, Revision revision)>;
  using TakeUnreadable = std::function<void(std::string key, const StorageError& why)>;
  Awaitable<Revision> read_all(TakeItem take, TakeUnreadable unreadable);
  /// A watch of everything after `revision`, which etcd has reached in that history, with bookmarks for
  /// etcd's progress notifications. Undecodable values do not end it: see WatchSpec::tell_unreadable.
  std::unique_ptr<FeedingWatch> watch_all(Revision revision, Lineage lineage,
                                          boost::asio::any_io_executor reader);
  /// If nothing has changed since `revision`, when there were `count` objects: the revision up to which
  /// that holds, else nullopt. Sends one request, for which etcd must read every key of the resource.
  Awaitable<std::optional<Revision>> unchanged_since(Revision revision, std::size_t count);

  /// Ends all current and later watches. Thread-safe.
  void close();
  /// Null: no metrics.
  ResourceMetrics* metrics() const { return context_->metrics.get(); }

 private:
  struct State {
    api::Object object;
    Revision revision = 0;  // 0: does not exist
    bool stale = false;     // must be rewritten, even if unchanged
  };
  class Basis;
  class ObjectPages;
  class OpenWatches;
  class CountedWatch;

  Awaitable<State> fetch(const std::string& whole);
  State state_of(const std::string& whole, std::vector<KeyValue> kvs) const;
  Awaitable<Revision> wait_for(Revision revision);
  Awaitable<std::int64_t> lease();
  Awaitable<ListResult> list_one(std::string key, Revision at, Predicate predicate);
  Awaitable<ListResult> list_all(std::string start, std::string end, Revision at,
                                 Predicate predicate);
  // With the name of the operation for metrics.
  Awaitable<RangeResponse> range(const char* operation, RangeRequest request,
                                 const std::string& whole);
  RangePages pages_of(std::string start, std::string end, Revision revision, bool stream);
  Awaitable<TxnResponse> txn(const char* operation, std::string request, const std::string& whole);
  std::string checked_key(const std::string& key) const;

  const std::shared_ptr<const Context> context_;
  const std::shared_ptr<LeaseManager> leases_;
  const std::chrono::seconds ttl_;
  const std::shared_ptr<OpenWatches> watches_;
};

}  // namespace lookout::apiserver::storage::etcd3
