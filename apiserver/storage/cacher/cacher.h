// A cache in front of the storage of one resource: k8s.io/apiserver/pkg/storage/cacher.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "apiserver/storage/etcd3/store.h"
#include "apiserver/storage/history.h"
#include "apiserver/storage/memory/table.h"
#include "lookout/apiserver/storage/interface.h"

namespace lookout::apiserver::storage::cacher {

struct Options {
  /// The limits of the history.
  HistoryLimits history = {};
  /// How long a request waits for a revision, or for the cache to be filled.
  std::chrono::milliseconds future_wait{3000};
  /// After this time without an event, the storage is queried for missed ones: a member of etcd may hang
  /// with open connections.
  std::chrono::milliseconds silence{30000};
  /// How long the storage may reject the watch until the cache is filled again, which ends the watches
  /// of clients.
  std::chrono::milliseconds rejection_patience{30000};
  /// A progress request without a response within this time is sent again.
  std::chrono::milliseconds progress_patience{20};
};

/// Serves lists and watches from a table in memory (the memory storage's), which one watch of the storage
/// fills. Writes, and gets of the newest state, go to the storage.
///
/// A read with a minimum revision, or of the newest state, waits until the table has reached it. The
/// table does not receive changes of other resources, so its watch may never report the revision: if it
/// is late, the cache queries the storage for changes of this resource.
///
/// Before the initial state is read, watches and lists are rejected with 429, as in kube-apiserver, to
/// protect the storage; only pages of everything go to the storage.
///
/// An unreadable value does not affect others. Lists and watches that would contain it fail with an
/// error that names its key, as do requests for it. Everything else is served. (In kube-apiserver, one
/// such value disables the whole cache.)
///
/// After connection errors or restarts of etcd, the watch continues at its revision. If etcd has
/// compacted it, the table is filled again, and its watchers get 410. The same happens if etcd was
/// replaced or restored to an older state: etcd3::Lineage.
class Cacher final : public Interface {
 public:
  /// `client` runs the tasks that fill the table.
  Cacher(std::shared_ptr<etcd3::Client> client, std::shared_ptr<etcd3::Store> store,
         Options options);
  ~Cacher() override;

  const std::string& prefix() const override;
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
  std::optional<std::size_t> known_count() const override;
  /// Drops history that exceeds Options.
  void trim();

  /// Ends all watches. From any thread.
  void close();
  /// After close(): releases the state. Lists go to the storage.
  void clear();

 private:
  class Core;
  const std::shared_ptr<Core> core_;
};

}  // namespace lookout::apiserver::storage::cacher
