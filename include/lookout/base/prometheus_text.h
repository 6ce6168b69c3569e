// Metrics in Prometheus' text format.
#pragma once

#include <string>
#include <vector>

#include "lookout/base/metrics.h"

namespace lookout::metrics {

/// The exposition format, version 0.0.4. Groups samples by name. Samples with the same name and
/// labels are added up; for gauges, the last one counts.
std::string prometheus_text(const std::vector<Sample>& samples);

/// The content type of that text.
inline constexpr const char* kPrometheusType = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace lookout::metrics
