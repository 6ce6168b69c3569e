// RangeStream: many keys as one stream of responses.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <memory>
#include <vector>

#include "apiserver/storage/etcd3/client.h"

namespace lookout::apiserver::storage::etcd3 {

/// A range that etcd sends in parts (KV.RangeStream, from etcd 3.7). Reading starts immediately and
/// continues in the background, until about 8 MB are queued. There are no retries: after an error, the
/// caller must read the rest. For one coroutine at a time, which may be destroyed at any time.
class RangeStream {
 public:
  /// Null if the member in use has no such streams. `request` has a revision and no limit; `reader`
  /// is the executor of the coroutine that calls next(). With `metrics`, it counts as a request.
  static std::unique_ptr<RangeStream> open(const std::shared_ptr<Client>& client,
                                           RangeRequest request,
                                           boost::asio::any_io_executor reader,
                                           std::shared_ptr<ResourceMetrics> metrics);
  ~RangeStream();
  RangeStream(const RangeStream&) = delete;
  RangeStream& operator=(const RangeStream&) = delete;

  /// The next keys, in their order. None at the end.
  Awaitable<std::vector<KeyValue>> next();
  /// After the end: whether the range was complete. The reason is logged otherwise.
  bool is_complete() const;

 private:
  class State;

  explicit RangeStream(std::shared_ptr<State> state);

  const std::shared_ptr<State> state_;
};

}  // namespace lookout::apiserver::storage::etcd3
