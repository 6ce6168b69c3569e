// One instance of the service.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include "cmd/bench/fleet/cluster.h"
#include "cmd/bench/fleet/instance_server.h"
#include "lookout/base/pinned.h"
#include "lookout/registry/app.h"

namespace lookout::cmd::bench::fleet {

struct InstanceOptions {
  std::chrono::microseconds answer_time{2'000};
  /// AppOptions::notice. 0: like kratos' App, which ends its servers right after it has deregistered.
  std::chrono::milliseconds notice{1'000};
};

/// A simulated program: a pod, a server with sockets, and an App that registers it, with threads
/// instead of a process. For one thread.
class Instance : public base::Pinned {
 public:
  /// Returns before it is registered.
  Instance(Cluster& cluster, std::string name, const InstanceOptions& options);
  /// Kills the instance if it runs, and removes its pod.
  ~Instance();

  bool wait_registered(std::chrono::milliseconds time) const;
  const std::string& name() const { return name_; }
  std::uint16_t port() const { return server_.port(); }
  InstanceServer& server() { return server_; }

  /// SIGTERM. Returns immediately; ended() waits for the end and removes the pod.
  void terminate();
  void ended();
  /// SIGKILL: the instance is not deregistered, and the pod does not change.
  void kill();

 private:
  class Announcer;

  Cluster& cluster_;
  const std::string name_;
  InstanceServer server_;
  const std::shared_ptr<Announcer> announcer_;
  std::unique_ptr<registry::App> app_;
  std::thread thread_;
  bool has_pod_ = true;
};

}  // namespace lookout::cmd::bench::fleet
