// Making etcd forget the past now and then.
#pragma once

#include <chrono>
#include <memory>

#include "apiserver/storage/etcd3/client.h"

namespace lookout::apiserver::storage::etcd3 {

/// The state of a compactor between two runs.
struct CompactorState {
  /// How often the key "compact_rev_key" has been written, as far as it knows.
  std::int64_t time = 0;
  /// The revision when it last looked: what etcd is told to forget next time.
  Revision revision = 0;
};

/// One time of k8s.io/apiserver/pkg/storage/etcd3/compact.go. All servers on one etcd, real API
/// servers as well, count the compactions in one key: who gets to write it does the next one, so
/// that there is one in each interval, of what is older than the interval. Gives the revision up to
/// which etcd forgot; 0 if it was somebody else's turn.
Awaitable<Revision> compact_once(std::shared_ptr<Client> client, CompactorState& state);

/// Does so every `interval`, for as long as the client is not shut down and nobody stops it.
Awaitable<void> run_compactor(std::shared_ptr<Client> client, std::chrono::milliseconds interval,
                              std::stop_token stop);

}  // namespace lookout::apiserver::storage::etcd3
