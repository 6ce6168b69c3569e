// The network between the members of a cluster of etcds.
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <memory>
#include <vector>

namespace lookout::test {

/// A port for each member, behind which the member is; who connects is told apart by the process that
/// the connection belongs to. So a member can be cut off from the others in both directions.
class PeerNetwork {
 public:
  /// The ports at which the members listen.
  explicit PeerNetwork(const std::vector<int>& members);
  ~PeerNetwork();
  PeerNetwork(const PeerNetwork&) = delete;
  PeerNetwork& operator=(const PeerNetwork&) = delete;

  /// Where the others reach the member.
  int port(std::size_t member) const;
  /// The process that the member is now.
  void set_process(std::size_t member, pid_t pid);

  /// Nothing is passed on between a member and the others any more; no connection breaks.
  void isolate(std::size_t member);
  /// Heals all partitions.
  void rejoin();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lookout::test
