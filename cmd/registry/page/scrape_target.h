// The address of a pod's metrics.
#pragma once

#include <optional>
#include <string>

#include "lookout/api/object.h"

namespace lookout::cmd::registry_cmd {

/// The host is always the pod's IP: annotations select the port and the path, but not the host.
struct ScrapeTarget {
  std::string pod;  ///< "shop/web-1"
  std::string url;  ///< "http://10.1.2.3:9090/metrics"

  friend bool operator==(const ScrapeTarget&, const ScrapeTarget&) = default;
};

/// The target of a pod with the usual annotations: prometheus.io/scrape ("true"),
/// prometheus.io/port and prometheus.io/path (default: /metrics). nullopt if the pod does not have
/// them, is not running or uses its node's network, or if its IP cannot be a pod's (loopback,
/// link-local, multicast).
std::optional<ScrapeTarget> scrape_target(const api::Object& pod);

}  // namespace lookout::cmd::registry_cmd
