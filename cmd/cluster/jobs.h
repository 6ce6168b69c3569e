// Helpers for Jobs in the simulated cluster.
#pragma once

#include <string_view>

#include "lookout/k8s/batch/v1.h"

namespace lookout::cmd::cluster {

/// "Complete" or "Failed"; empty while the job has not ended.
inline std::string_view how_ended(const k8s::batch::v1::Job& job) {
  for (const auto condition : job.status().conditions()) {
    if (condition.status() == "True" &&
        (condition.type() == "Complete" || condition.type() == "Failed"))
      return condition.type();
  }
  return {};
}

}  // namespace lookout::cmd::cluster
