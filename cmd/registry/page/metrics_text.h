// A reader for the subset of Prometheus' text format that the page needs.
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace lookout::cmd::registry_cmd {

/// A sample of a metric of a service or of one of its instances.
struct MetricLine {
  std::string_view name;
  std::string service;
  std::string instance;  ///< empty: the whole service
  double value = 0;
};

/// Lines with longer labels are skipped.
inline constexpr std::size_t kLongestLabel = 300;

/// Calls `take` for each sample whose name begins with `prefix` and that has the label "service" and
/// a finite value. Skips everything else: comments, other metrics, malformed lines. The name refers
/// to `text`.
void read_metrics(std::string_view text, std::string_view prefix,
                  const std::function<void(MetricLine line)>& take);

}  // namespace lookout::cmd::registry_cmd
