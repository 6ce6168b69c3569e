#include "apiserver/storage/etcd3/compactor.h"

#include <functional>
#include <utility>

#include "apiserver/storage/etcd3/periodic.h"
#include "lookout/base/detail/log.h"

namespace lookout::apiserver::storage::etcd3 {
namespace {

// kube-apiserver's key, which is outside of the prefix.
constexpr std::string_view kCompactKey = "compact_rev_key";

}  // namespace

Awaitable<Revision> compact_once(std::shared_ptr<Client> client, CompactorState& state) {
  const TxnResponse answer =
      co_await client->txn(put_if_version(kCompactKey, std::to_string(state.revision), state.time));
  const Revision forget = state.revision;
  state.revision = answer.revision;
  if (!answer.succeeded) {
    state.time = answer.kvs.empty() ? 0 : answer.kvs.front().version;
    co_return 0;
  }
  ++state.time;
  // The first time, the age of revisions is unknown.
  if (forget == 0) co_return 0;
  co_await client->compact(forget);
  log::debug("etcd: compacted the history before revision {}", forget);
  co_return forget;
}

Awaitable<void> run_compactor(std::shared_ptr<Client> client, std::chrono::milliseconds interval,
                              std::stop_token stop) {
  CompactorState state;
  const std::function<Awaitable<void>()> compact = [&]() -> Awaitable<void> {
    co_await compact_once(client, state);
  };
  const Periodic periodic{.interval = interval, .name = "the compaction"};
  co_await run_periodically(periodic, compact, std::move(stop));
}

}  // namespace lookout::apiserver::storage::etcd3
