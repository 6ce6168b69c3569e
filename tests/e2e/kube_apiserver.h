// A real kube-apiserver with its etcd, for end-to-end tests.
#pragma once

#include <filesystem>
#include <optional>

#include "lookout/rest/config.h"
#include "tests/support/files.h"
#include "tests/support/process.h"

namespace lookout::test {

/// Why tests that need it are skipped.
inline constexpr char kNoKubeApiserver[] =
    "*** there is no kube-apiserver: scripts/build-kube-apiserver.sh builds one ***";

/// Runs on loopback, over TLS, with a token for an administrator, until it goes out of scope.
class KubeApiserver {
 public:
  /// The program that $LOOKOUT_KUBE_APISERVER names or that scripts/build-kube-apiserver.sh has
  /// built. Empty if it or etcd is not available: the test should then be skipped with a message.
  static std::optional<std::filesystem::path> find_program();

  explicit KubeApiserver(std::filesystem::path program);

  /// Starts the API server (etcd runs all the time) and waits until it is ready.
  void start();
  /// Kills it, like a crash.
  void kill();

  /// SIGSTOP and SIGCONT: the server does not respond, but keeps its connections.
  void freeze();
  void thaw();

  /// Compacts etcd's history up to the current revision. (The API server's watch cache is not
  /// affected.)
  void compact();

  int port() const { return port_; }
  rest::Config config() const;

 private:
  void make_certificates();

  const std::filesystem::path program_;
  TempDir dir_;
  const TempDir data_;
  const int port_;
  const int etcd_port_;
  std::optional<Process> etcd_;
  std::optional<Process> server_;
};

}  // namespace lookout::test
