// Call rates, from the counters of the callers.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "cmd/registry/page/notes.h"

namespace lookout::cmd::registry_cmd {

/// One program's counters of one instance.
struct Counts {
  double picks = 0;
  double errors = 0;
  bool ejected = false;
};
/// One program's counters, by service and pod.
struct Sample {
  std::chrono::steady_clock::time_point at;
  std::map<std::pair<std::string, std::string>, Counts> instances = {};
};

/// The maximum number of instances per program; further ones are ignored.
inline constexpr std::size_t kMostInstancesOfAProgram = 20'000;

/// Reads lookout_registry_picks_total, _errors_total and _instance_ejected.
Sample read_sample(std::string_view metrics, std::chrono::steady_clock::time_point at);

/// Adds one program's rates between two samples to `traffic`. A counter that has decreased was
/// reset.
void add_rates(Traffic& traffic, const Sample& before, const Sample& after);
/// Computes the sums of the services. Call it after all programs have been added.
void sum_up(Traffic& traffic);

}  // namespace lookout::cmd::registry_cmd
