// The members of an etcd cluster.
#pragma once

#include <chrono>
#include <cstddef>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "apiserver/grpc/channel.h"

namespace lookout::apiserver::storage::etcd3 {

/// The connections to one member.
using Member = std::shared_ptr<grpc::Channel>;

/// The known members, and the current one: a client uses a member until it does not respond.
/// Thread-safe.
class Members {
 public:
  using Connect = std::function<Member(std::string url)>;

  /// `connect` creates the channel to a member. Throws lookout::Error if there is no URL or an invalid
  /// one.
  Members(Connect connect, const std::vector<std::string>& urls);

  Member current() const;
  std::size_t count() const;
  /// Switches to the next member, unless that has already happened.
  void leave(const Member& member, const std::string& why);
  /// Replaces the list. Members in both lists keep their connections; calls to removed members may
  /// finish. Skips unusable URLs. An empty list changes nothing.
  void replace(const std::vector<std::string>& urls);
  /// Ends all calls, including those to removed members; later ones fail immediately.
  void shutdown();

 private:
  const Connect connect_;
  mutable std::mutex mutex_;
  std::vector<Member> list_;  // guarded by mutex_, as are those below
  Member current_;
  std::vector<std::weak_ptr<grpc::Channel>> former_;
  std::chrono::steady_clock::time_point next_log_;
  bool closed_ = false;
};

}  // namespace lookout::apiserver::storage::etcd3
