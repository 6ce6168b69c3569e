// ReconcileIds: the names of a controller's reconciles in logs.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <string>

#include "lookout/controller/logger.h"
#include "lookout/controller/request.h"

namespace lookout::controller::detail {

/// A reconcile has a number, which costs nothing; its id, a UUID, is computed when a line needs it. From
/// any thread.
class ReconcileIds {
 public:
  /// The number of the next reconcile.
  std::uint64_t next() { return ++last_; }
  /// The id of a number. Other numbers, controllers and processes have other ids.
  std::string id(std::uint64_t number) const;
  /// The logger of a reconcile.
  Logger logger(const std::string& controller, const Request& request, std::uint64_t number) const;

 private:
  std::atomic<std::uint64_t> last_{0};
  mutable std::once_flag seeded_;
  // Written once, by the first id().
  mutable std::uint64_t first_ = 0;
  mutable std::uint64_t second_ = 0;
};

}  // namespace lookout::controller::detail
