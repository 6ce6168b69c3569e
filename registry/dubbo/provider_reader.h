// Reads instances from the records of pods.
#pragma once

#include <array>
#include <string>
#include <string_view>

#include "lookout/api/projection.h"
#include "registry/hub.h"

namespace lookout::registry::dubbo {

class ProviderReader : public registry::detail::InstanceReader {
 public:
  ProviderReader(std::string annotation, bool include_unready)
      : annotation_(std::move(annotation)), include_unready_(include_unready) {}

  /// The pod's fields that it reads.
  api::Projection projection() const;

  void services_of(const api::Object& pod, cache::IndexValues& services) const override;
  bool is_listed(std::string_view service) const override;
  bool read(const api::Object& pod, std::string_view service,
            std::vector<InstancePtr>& instances) const override;
  void keep(const api::Object& pod, const std::vector<InstancePtr>& last,
            std::vector<InstancePtr>& instances) const override;
  std::optional<std::string> defect(const api::Object& pod) const override;

 private:
  std::string_view records_of(const api::Object& pod) const;

  const std::string annotation_;
  const bool include_unready_;
};

/// A provider, from its key.
struct Provider {
  /// "group/interface:version".
  std::string service;
  /// The service with "*" for the group, for the version and for both; consumers may request these.
  std::array<std::string, 3> wildcards;
  /// With one endpoint; without the pod's data.
  ServiceInstance instance;
};

/// Reads "/ROOT/INTERFACE/providers/URL". nullopt for other keys, and for a malformed URL: then
/// `error` is set.
std::optional<Provider> read_provider(std::string_view key, std::string& error);

}  // namespace lookout::registry::dubbo
