// MetricsServer: serves the program's metrics for Prometheus.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lookout/base/pinned.h"
#include "lookout/informer/shared_index_informer.h"

namespace lookout::cmd {

/// Serves /metrics at an address ("127.0.0.1:9090", ":9090") while it exists, with the metrics of these
/// informers.
class MetricsServer : public base::Pinned {
 public:
  /// Throws Error if the address cannot be used.
  MetricsServer(const std::string& address,
                std::vector<std::shared_ptr<informer::SharedIndexInformer>> informers);
  ~MetricsServer();

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace lookout::cmd
