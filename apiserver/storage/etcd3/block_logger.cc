#include "apiserver/storage/etcd3/block_logger.h"

#include <fmt/format.h>

#include <utility>

namespace lookout::apiserver::storage::etcd3 {

BlockLogger::BlockLogger(std::string message, std::string subject, Clock::time_point now, Log log)
    : message_(std::move(message)), subject_(std::move(subject)), log_(log), last_(now) {}

void BlockLogger::record_wait(Clock::duration waited, Clock::time_point now) {
  using std::chrono::duration_cast;
  using std::chrono::milliseconds;
  ++events_;
  waited_ += waited;
  const Clock::duration window = now - last_;
  if (window < kInterval) return;
  if (waited_ > kThreshold) {
    log_(fmt::format("{}: {}: waited {} ms for {} events within {} ms", subject_, message_,
                     duration_cast<milliseconds>(waited_).count(), events_,
                     duration_cast<milliseconds>(window).count()));
  }
  events_ = 0;
  waited_ = {};
  last_ = now;
}

}  // namespace lookout::apiserver::storage::etcd3
