// Reads instances from pods.
#pragma once

#include <optional>

#include "registry/hub.h"

namespace lookout::registry::kratos {

class PodReader : public detail::InstanceReader {
 public:
  explicit PodReader(bool include_unready) : include_unready_(include_unready) {}

  void services_of(const api::Object& pod, cache::IndexValues& services) const override;
  bool read(const api::Object& pod, std::string_view service,
            std::vector<InstancePtr>& instances) const override;
  void keep(const api::Object& pod, const std::vector<InstancePtr>& last,
            std::vector<InstancePtr>& instances) const override;
  std::optional<std::string> defect(const api::Object& pod) const override;

 private:
  /// Whether the pod is ready. Empty: it is not served.
  std::optional<bool> readiness(const api::Object& pod) const;

  const bool include_unready_;
};

}  // namespace lookout::registry::kratos
