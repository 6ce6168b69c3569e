// Metrics in Prometheus' text format, as far as the page needs them.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace lookout::cmd::registry_cmd {

/// A sample of a metric that is about a service or an instance of it.
struct MetricLine {
  std::string_view name;
  std::string service;
  std::string instance;  ///< empty: the whole service
  double value = 0;
};

/// Longer labels than these make a line be left out.
inline constexpr std::size_t kLongestLabel = 300;

/// Calls `take` for each sample whose name begins with `prefix`, that has the label "service" and a
/// finite value. Everything else is skipped: comments, other metrics, malformed lines. The name
/// refers to `text`.
void read_metrics(std::string_view text, std::string_view prefix,
                  const std::function<void(MetricLine line)>& take);

}  // namespace lookout::cmd::registry_cmd
