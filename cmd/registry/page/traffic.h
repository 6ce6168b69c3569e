// Rates of calls, from the counters of the programs that make them.
#pragma once

#include <chrono>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cmd/registry/page/notes.h"

namespace lookout::cmd::registry_cmd {

/// What one program has counted of one instance.
struct Counts {
  double picks = 0;
  double errors = 0;
  bool ejected = false;
};
/// What one program has counted, by service and pod.
struct Sample {
  std::chrono::steady_clock::time_point at;
  std::map<std::pair<std::string, std::string>, Counts> instances = {};
};

/// No program has more instances than these to tell of; the others are left out.
inline constexpr std::size_t kMostInstancesOfAProgram = 20'000;

/// Reads lookout_registry_picks_total, _errors_total and _instance_ejected.
Sample read_sample(std::string_view metrics, std::chrono::steady_clock::time_point at);

/// Adds to `traffic` what one program did between two samples. Counters that have become smaller
/// began anew.
void add_rates(Traffic& traffic, const Sample& before, const Sample& after);
/// When all programs have been added: the sums of the services.
void sum_up(Traffic& traffic);

}  // namespace lookout::cmd::registry_cmd
