// Reads instances from EndpointSlices.
#pragma once

#include "registry/hub.h"

namespace lookout::registry::services {

class SliceReader : public detail::InstanceReader {
 public:
  /// `qualified`: service names are "namespace/name".
  SliceReader(bool qualified, bool include_unready)
      : qualified_(qualified), include_unready_(include_unready) {}

  /// The slice's fields that it reads.
  static const api::Projection& projection();

  void services_of(const api::Object& slice, cache::IndexValues& services) const override;
  bool read(const api::Object& slice, std::string_view service,
            std::vector<InstancePtr>& instances) const override;
  std::optional<std::string> defect(const api::Object&) const override { return std::nullopt; }
  InstancePtr merged(const InstancePtr& a, const InstancePtr& b) const override;
  /// Settles what slices disagree about. As kube-proxy: if no instance is ready, those that terminate
  /// but still serve are.
  void choose(std::vector<InstancePtr>& instances) const override;

 private:
  const bool qualified_;
  const bool include_unready_;
};

}  // namespace lookout::registry::services
