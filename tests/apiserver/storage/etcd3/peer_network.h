// The network between the members of a cluster of etcds.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <vector>

namespace lookout::test {

/// A port for each member, which forwards to it; the process that opened a connection identifies
/// the connecting member. So a member can be cut off from the others in both directions.
class PeerNetwork {
 public:
  /// The ports at which the members listen.
  explicit PeerNetwork(const std::vector<int>& members);
  ~PeerNetwork();
  PeerNetwork(const PeerNetwork&) = delete;
  PeerNetwork& operator=(const PeerNetwork&) = delete;

  /// The port at which other members reach the member.
  int port(std::size_t member) const;
  /// Sets the member's current process.
  void set_process(std::size_t member, pid_t pid);

  /// Drops all data between a member and the others without closing connections.
  void isolate(std::size_t member);
  /// Heals all partitions.
  void rejoin();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lookout::test
