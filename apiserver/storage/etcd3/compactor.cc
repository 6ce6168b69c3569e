#include "apiserver/storage/etcd3/compactor.h"

#include <boost/asio/this_coro.hpp>

#include "lookout/base/async_event.h"
#include "lookout/base/detail/log.h"

namespace lookout::apiserver::storage::etcd3 {
namespace {

// kube-apiserver's, at the root.
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
  // The first time, nobody knows what is old.
  if (forget == 0) co_return 0;
  co_await client->compact(forget);
  log::debug("etcd: compacted the history before revision {}", forget);
  co_return forget;
}

Awaitable<void> run_compactor(std::shared_ptr<Client> client, std::chrono::milliseconds interval,
                              std::stop_token stop) {
  CompactorState state;
  AsyncEvent bell(co_await boost::asio::this_coro::executor);
  const std::stop_callback wake(stop, [bell] { bell.ring(); });
  auto next = std::chrono::steady_clock::now() + interval;
  while (!stop.stop_requested()) {
    co_await bell.wait(next);
    if (stop.stop_requested()) co_return;
    if (std::chrono::steady_clock::now() < next) continue;
    next += interval;
    try {
      co_await compact_once(client, state);
    } catch (const std::exception& e) {
      if (!stop.stop_requested()) log::warn("etcd: the compaction failed: {}", e.what());
    }
  }
}

}  // namespace lookout::apiserver::storage::etcd3
