// Periodic compaction of etcd.
#pragma once

#include <chrono>
#include <memory>

#include "apiserver/storage/etcd3/client.h"

namespace lookout::apiserver::storage::etcd3 {

/// The state of a compactor between two runs.
struct CompactorState {
  /// The last known version of the key "compact_rev_key".
  std::int64_t time = 0;
  /// The revision at the last run, which the next run compacts.
  Revision revision = 0;
};

/// One round of k8s.io/apiserver/pkg/storage/etcd3/compact.go. All servers on one etcd, including
/// kube-apiservers, count the compactions in one key: the server that writes it does the next
/// compaction, so there is one per interval, of revisions older than the interval. Returns the compacted
/// revision; 0 if it did not compact, because this is the first run or another server has written the
/// key.
Awaitable<Revision> compact_once(std::shared_ptr<Client> client, CompactorState& state);

/// Calls compact_once() every `interval`, until the client is shut down or a stop is requested.
Awaitable<void> run_compactor(std::shared_ptr<Client> client, std::chrono::milliseconds interval,
                              std::stop_token stop);

}  // namespace lookout::apiserver::storage::etcd3
