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
  /// After so long without an event the storage is asked whether there should have been one: a
  /// member of etcd may hang, with its connections open.
  std::chrono::milliseconds silence{30000};
  /// A request for progress that is not answered within this time is sent again.
  std::chrono::milliseconds progress_patience{20};
};

/// Lists and watches are served from a table in memory, the same as that of the memory storage,
/// which follows the storage by one watch. Writes, and objects of which the newest state is wanted,
/// go to the storage.
///
/// A read with a minimum revision, or of the newest state, waits until the table has reached it.
/// The table does not see changes of other resources, though, so its own watch may never report
/// the revision: if it is late, the cache asks the storage whether this resource has changed since.
///
/// Without a state (it has not been read yet), watches and lists are refused with 429, as
/// kube-apiserver does, so that they do not all go to the storage; only pages of everything do.
///
/// A value that cannot be read does not take the others with it. Lists and watches that would
/// contain it fail with an error that names its key; so do requests for it. Everything else is
/// served. (In kube-apiserver one such value keeps the whole cache from serving.)
///
/// The watch goes on where it was when connections break or etcd restarts. If etcd has forgotten
/// that place, the table is filled again, and its watchers get 410. So it is if another etcd comes
/// in the place of the first one, or the same one restored to an older state: etcd3::Lineage.
class Cacher final : public Interface {
 public:
  /// `client` runs what fills the table.
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
  /// Forgets the past that is older than Options says.
  void trim();

  /// Ends all watches. From any thread.
  void close();
  /// After close(): lets go of the state. Lists go to the storage.
  void clear();

 private:
  class Core;
  const std::shared_ptr<Core> core_;
};

}  // namespace lookout::apiserver::storage::cacher
