#include "apiserver/storage/etcd3/periodic.h"

#include <boost/asio/this_coro.hpp>

#include "lookout/base/async_event.h"
#include "lookout/base/detail/log.h"

namespace lookout::apiserver::storage::etcd3 {

using std::chrono::steady_clock;

Awaitable<void> run_periodically(Periodic periodic, std::function<Awaitable<void>()> task,
                                 std::stop_token stop) {
  AsyncEvent bell(co_await boost::asio::this_coro::executor);
  const std::stop_callback wake(stop, [bell] { bell.ring(); });
  auto next = steady_clock::now();
  if (!periodic.at_once) next += periodic.interval;
  while (!stop.stop_requested()) {
    if (steady_clock::now() < next) {
      co_await bell.wait(next);
      continue;
    }
    next = steady_clock::now() + periodic.interval;
    try {
      co_await task();
    } catch (const std::exception& e) {
      if (!stop.stop_requested()) log::warn("etcd: {} failed: {}", periodic.name, e.what());
    }
  }
}

}  // namespace lookout::apiserver::storage::etcd3
