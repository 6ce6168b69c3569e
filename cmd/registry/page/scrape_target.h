// Where a pod's metrics are.
#pragma once

#include <optional>
#include <string>

#include "lookout/api/object.h"

namespace lookout::cmd::registry_cmd {

/// An address of the pod itself: whoever writes annotations chooses the port and the path, but not
/// the machine.
struct ScrapeTarget {
  std::string pod;  ///< "shop/web-1"
  std::string url;  ///< "http://10.1.2.3:9090/metrics"

  friend bool operator==(const ScrapeTarget&, const ScrapeTarget&) = default;
};

/// The target of a pod that asks to be scraped with the usual annotations: prometheus.io/scrape
/// ("true"), prometheus.io/port and prometheus.io/path (default: /metrics). Nothing if it does not
/// ask, does not run, shares its node's network, or if its address is not one that pods have
/// (loopback, link-local, multicast).
std::optional<ScrapeTarget> scrape_target(const api::Object& pod);

}  // namespace lookout::cmd::registry_cmd
