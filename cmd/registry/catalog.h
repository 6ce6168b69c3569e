// Catalog: the current state of all services of a registry.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "lookout/base/pinned.h"
#include "lookout/registry/registry.h"

namespace lookout::cmd::registry_cmd {

/// The facts that a page shows beside the services (cmd/registry/page/notes.h).
struct Notes;

/// All services at one moment. Immutable.
struct CatalogState {
  /// The state with the larger number is newer; 0 before there is any data.
  std::uint64_t revision = 0;
  /// False: there is no data yet.
  bool synced = false;
  registry::Freshness freshness;
  /// Sorted by name.
  std::vector<registry::InstanceSetPtr> services;
  /// Null without a function for notes.
  std::shared_ptr<const Notes> notes = {};

  /// Null if there is no such service.
  registry::InstanceSetPtr find(const std::string& service) const;
};
using CatalogStatePtr = std::shared_ptr<const CatalogState>;

/// Returns the notes of the next state; the same pointer as in `before` if they have not changed. Called
/// for every check, on the catalog's thread.
using TakeNotes = std::function<std::shared_ptr<const Notes>(const CatalogState& before,
                                                             const CatalogState& next)>;

/// Follows all services and periodically checks whether sets have changed. Changes between two checks
/// are combined, so the cost of a check depends on the number of services, not of changes.
class Catalog : public base::Pinned {
 public:
  Catalog(std::shared_ptr<registry::Discovery> discovery, std::chrono::milliseconds interval,
          TakeNotes take_notes = {});
  ~Catalog();

  /// The newest state. From any thread.
  CatalogStatePtr state() const;

  /// `bell` is called whenever there is a newer state, on the catalog's thread, and must not block.
  std::uint64_t add_listener(std::function<void()> bell);
  /// Afterwards the listener is not called.
  void remove_listener(std::uint64_t id);

  /// Afterwards no listener is called.
  void stop();

 private:
  void run(const std::stop_token& stop);
  CatalogState look(const std::stop_token& stop);
  void publish(CatalogState next);

  const std::shared_ptr<registry::Discovery> discovery_;
  const std::chrono::milliseconds interval_;
  const TakeNotes take_notes_;
  std::map<std::string, registry::Watcher> watchers_;  // used by the thread only

  mutable std::mutex mutex_;
  // Guarded by mutex_.
  CatalogStatePtr state_;
  std::map<std::uint64_t, std::function<void()>> listeners_;
  std::uint64_t last_listener_ = 0;

  std::jthread thread_;  // last: it uses the other members
};

}  // namespace lookout::cmd::registry_cmd
