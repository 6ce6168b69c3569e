// RangeStream: many keys as one stream of answers.
#pragma once

#include <boost/asio/any_io_executor.hpp>
#include <memory>
#include <vector>

#include "apiserver/storage/etcd3/client.h"

namespace lookout::apiserver::storage::etcd3 {

/// A range that etcd sends in parts, without being asked for each (KV.RangeStream; etcd has it from
/// 3.7 on). Reading begins at once and goes on while the caller does other things, until about 8 MB
/// wait for it. Nothing is tried again: who needs the rest of a stream that breaks asks for it. One
/// coroutine at a time uses it; it may go away at any time.
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
  /// Behind the end: whether that was the end of the range. The log says why not.
  bool is_complete() const;

 private:
  class State;

  explicit RangeStream(std::shared_ptr<State> state);

  const std::shared_ptr<State> state_;
};

}  // namespace lookout::apiserver::storage::etcd3
