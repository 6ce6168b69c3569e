// InFlight: limits the running requests of a user or an address.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <unordered_map>

#include "apiserver/auth/user.h"
#include "apiserver/endpoints/request_info.h"

namespace lookout::apiserver::endpoints {

/// Counts the running requests of each client: of a user, or of an address. Safe to use from many
/// threads; must outlive its slots.
class InFlight {
 public:
  /// A running request, until it is destroyed.
  class Slot {
   public:
    Slot() = default;
    Slot(InFlight& counts, std::string client);
    ~Slot();
    Slot(Slot&& other) noexcept;
    Slot& operator=(Slot&& other) = delete;

   private:
    InFlight* counts_ = nullptr;
    std::string client_;
  };

  /// Throws api::StatusError (429) if the client has `limit` requests running; 0: no limit. Watches
  /// and the requests of system:masters are not counted.
  Slot enter(std::string client, const auth::User& user, const RequestInfo& info,
             std::size_t limit);

 private:
  std::mutex mutex_;
  std::unordered_map<std::string, std::size_t> running_;  // guarded by mutex_
};

}  // namespace lookout::apiserver::endpoints
