#include "apiserver/endpoints/in_flight.h"

#include <algorithm>
#include <utility>

#include "lookout/api/status.h"

namespace lookout::apiserver::endpoints {

InFlight::Slot::Slot(InFlight& counts, std::string user)
    : counts_(&counts), user_(std::move(user)) {}

InFlight::Slot::Slot(Slot&& other) noexcept
    : counts_(std::exchange(other.counts_, nullptr)), user_(std::move(other.user_)) {}

InFlight::Slot::~Slot() {
  if (counts_ == nullptr) return;
  const std::lock_guard lock(counts_->mutex_);
  const auto running = counts_->running_.find(user_);
  if (--running->second == 0) counts_->running_.erase(running);
}

InFlight::Slot InFlight::enter(const auth::User& user, const RequestInfo& info, std::size_t limit) {
  if (limit == 0 || info.verb == "watch" ||
      std::find(user.groups.begin(), user.groups.end(), "system:masters") != user.groups.end())
    return {};
  const std::lock_guard lock(mutex_);
  std::size_t& running = running_[user.name];
  if (running >= limit) {
    throw api::StatusError::too_many_requests("Too many requests, please try again later.", 1);
  }
  ++running;
  return {*this, user.name};
}

}  // namespace lookout::apiserver::endpoints
