// Metrics in Prometheus' text format.
#pragma once

#include <string>
#include <vector>

#include "lookout/base/metrics.h"

namespace lookout::controller::detail {

/// The exposition format, version 0.0.4. Samples of one name stand together, whatever their order.
std::string prometheus_text(const std::vector<metrics::Sample>& samples);

}  // namespace lookout::controller::detail
