// Deadline: the time limit of a wait.
#pragma once

#include <atomic>
#include <boost/asio/any_io_executor.hpp>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>

#include "lookout/tools/watch/until.h"

namespace lookout::watch::detail {

/// Combines a stop token and a timeout into one stop token, and records which came first.
class Deadline {
 public:
  Deadline(const boost::asio::any_io_executor& executor, const WaitOptions& options);
  ~Deadline();
  Deadline(const Deadline&) = delete;
  Deadline& operator=(const Deadline&) = delete;

  std::stop_token token() const { return over_.get_token(); }
  bool over() const { return over_.stop_requested(); }
  const std::shared_ptr<Clock>& clock() const { return clock_; }
  /// The error of an ended wait.
  WaitError error(std::optional<api::WatchEvent> last_event) const;
  /// The same; after a timeout, the message ends with `state`.
  WaitError error(const std::string& state) const;

 private:
  struct Forward {
    void operator()() const { over.request_stop(); }
    mutable std::stop_source over;
  };

  const std::shared_ptr<Clock> clock_;
  const std::shared_ptr<std::atomic<bool>> expired_ = std::make_shared<std::atomic<bool>>(false);
  std::stop_source over_;
  std::stop_source done_;
  const std::stop_callback<Forward> forward_;
};

}  // namespace lookout::watch::detail
