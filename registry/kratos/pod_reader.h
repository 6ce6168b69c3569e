// Reads instances from pods.
#pragma once

#include "registry/hub.h"

namespace lookout::registry::kratos {

class PodReader : public detail::InstanceReader {
 public:
  explicit PodReader(bool include_unready) : include_unready_(include_unready) {}

  void services_of(const api::Object& pod, cache::IndexValues& services) const override;
  void read(const api::Object& pod, std::string_view service,
            std::vector<InstancePtr>& instances) const override;
  std::optional<std::string> defect(const api::Object& pod) const override;

 private:
  const bool include_unready_;
};

}  // namespace lookout::registry::kratos
