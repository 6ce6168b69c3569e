// Workload: the simulated users of a small busy cluster.
#pragma once

#include <cstdint>
#include <random>
#include <set>
#include <stop_token>
#include <string>
#include <thread>

#include "lookout/base/pinned.h"
#include "lookout/rest/client.h"

namespace lookout::cmd {

/// Simulates the users of a cluster: creates and scales deployments, creates and deletes services. Uses
/// the server's API, from its own thread, until it is destroyed.
class Workload : public base::Pinned {
 public:
  /// `client` is used on the workload's thread. `seed` determines the actions.
  Workload(rest::Client client, std::uint32_t seed);
  /// Stops; waits for the current step.
  ~Workload();

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
