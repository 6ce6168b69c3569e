// The users of a small busy cluster, simulated.
#pragma once

#include <cstdint>
#include <random>
#include <set>
#include <stop_token>
#include <string>
#include <thread>

#include "lookout/rest/client.h"

namespace lookout::cmd {

/// Does what people do to a cluster: deployments are made and scaled, services appear and
/// disappear. Everything happens through the API of the server, from a thread of its own, until it
/// is destroyed.
class Workload {
 public:
  /// `client` is used from the workload's thread. `seed` decides what happens.
  Workload(rest::Client client, std::uint32_t seed);
  /// Stops; waits for the step that is under way.
  ~Workload();
  Workload(const Workload&) = delete;
  Workload& operator=(const Workload&) = delete;

  static constexpr const char* kNamespace = "shop";

 private:
  void run(std::stop_token stop);
  void set_up();
  void step();
  void scale();
  void toggle_service();

  int random(int from, int to) { return std::uniform_int_distribution<int>(from, to)(random_); }
  std::string any_deployment();

  rest::Client client_;
  std::mt19937 random_;
  std::set<std::string> services_;
  std::jthread thread_;
};

}  // namespace lookout::cmd
