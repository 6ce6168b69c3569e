// Real etcds for tests.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/apiserver/storage/etcd3/peer_network.h"
#include "tests/support/files.h"
#include "tests/support/process.h"

namespace lookout::test {

/// Whether etcd is installed; prints a warning otherwise.
bool etcd_is_there();

/// A cluster of etcds on loopback, with its own data directory. Create and use it on the test's thread.
class EtcdCluster {
 public:
  struct Options {
    int members = 1;
    /// More flags for each member.
    std::vector<std::string> flags = {};
    /// The client URLs; https with TLS.
    bool tls = false;
    /// More flags for etcdctl, such as certificates; with TLS the cluster waits for its members only
    /// if there are some.
    std::vector<std::string> control_flags = {};
    /// Allows partitions between members.
    bool partitions = false;
  };

  EtcdCluster() : EtcdCluster(Options()) {}
  explicit EtcdCluster(Options options);

  /// The client URLs.
  std::vector<std::string> endpoints() const;
  std::string endpoint(std::size_t member = 0) const;
  int port(std::size_t member = 0) const { return members_[member].client_port; }
  std::size_t size() const { return members_.size(); }
  pid_t pid(std::size_t member) const { return members_[member].process->pid(); }

  /// SIGKILL, like a machine failure.
  void kill(std::size_t member);
  /// SIGTERM: a regular shutdown.
  void stop(std::size_t member);
  /// Restarts a member with its data; does not wait.
  void restart(std::size_t member);
  /// Saves a member's data to a file, and restarts all members from such a file only.
  std::string save_snapshot(std::size_t member) const;
  void restore(const std::string& snapshot);
  /// SIGSTOP and SIGCONT: a member that does not respond, but keeps its connections.
  void freeze(std::size_t member);
  void thaw(std::size_t member);
  /// Partitions a member from the others by dropping packets; clients still reach it.
  void isolate(std::size_t member);
  void rejoin();

  /// Waits until the cluster accepts writes.
  void wait_until_ready() const;
  /// The current leader. Waits until there is one.
  std::size_t leader() const;

  /// Runs etcdctl against all members (or one) and returns its output.
  std::string etcdctl(std::vector<std::string> arguments,
                      std::optional<std::size_t> member = {}) const;

 private:
  struct Member {
    std::string name;
    int client_port = 0;
    int peer_port = 0;
    std::optional<Process> process;
  };

  /// The URL at which other members reach this one.
  std::string peer_url(std::size_t member) const;
  std::string initial_cluster() const;

  TempDir dir_;
  Options options_;
  std::vector<Member> members_;
  std::unique_ptr<PeerNetwork> network_;
};

/// One etcd for all tests of the program; each uses its own prefix.
EtcdCluster& shared_etcd();
/// "/test-7": unique for each call.
std::string unique_etcd_prefix();

}  // namespace lookout::test
