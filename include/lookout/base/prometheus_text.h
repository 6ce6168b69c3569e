// Metrics in Prometheus' text format.
#pragma once

#include <string>
#include <vector>

#include "lookout/base/metrics.h"

namespace lookout::metrics {

/// The exposition format, version 0.0.4. Samples of one name stand together, whatever their order.
/// Those with the same labels, too, are added up; of gauges the last one stands.
std::string prometheus_text(const std::vector<Sample>& samples);

/// The content type of that text.
inline constexpr const char* kPrometheusType = "text/plain; version=0.0.4; charset=utf-8";

}  // namespace lookout::metrics
