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

/// The members that are known, and the one in use: a client stays with a member until that does not
/// answer. Thread-safe.
class Members {
 public:
  using Connect = std::function<Member(std::string url)>;

  /// `connect` makes the channel to a member. Throws lookout::Error if there is no URL, or one that
  /// is not that of an etcd.
  Members(Connect connect, const std::vector<std::string>& urls);

  Member current() const;
  std::size_t count() const;
  /// Goes on to the next member, unless that has happened already.
  void leave(const Member& member, const std::string& why);
  /// Replaces the list by that of the cluster. Those in both lists keep their connections; calls to
  /// those that are gone may finish. URLs that cannot be used are left out. An empty list changes
  /// nothing.
  void replace(const std::vector<std::string>& urls);
  /// Ends all calls, those to members that are gone included; later ones fail at once.
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
