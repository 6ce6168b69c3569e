#include "apiserver/endpoints/in_flight.h"

#include <algorithm>
#include <utility>

#include "lookout/api/status.h"

namespace lookout::apiserver::endpoints {

InFlight::Slot::Slot(InFlight& counts, std::string client)
    : counts_(&counts), client_(std::move(client)) {}

InFlight::Slot::Slot(Slot&& other) noexcept
    : counts_(std::exchange(other.counts_, nullptr)), client_(std::move(other.client_)) {}

InFlight::Slot::~Slot() {
  if (counts_ == nullptr) return;
  const std::lock_guard lock(counts_->mutex_);
  const auto running = counts_->running_.find(client_);
  if (--running->second == 0) counts_->running_.erase(running);
}

InFlight::Slot InFlight::enter(std::string client, const auth::User& user, const RequestInfo& info,
                               std::size_t limit) {
  if (limit == 0 || info.verb == "watch" ||
      std::find(user.groups.begin(), user.groups.end(), "system:masters") != user.groups.end())
    return {};
  const std::lock_guard lock(mutex_);
  std::size_t& running = running_[client];
  if (running >= limit) {
    throw api::StatusError::too_many_requests("Too many requests, please try again later.", 1);
  }
  ++running;
  return {*this, std::move(client)};
}

}  // namespace lookout::apiserver::endpoints
