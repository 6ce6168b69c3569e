// InformerDiscovery: discovery through informers.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "lookout/registry/options.h"
#include "lookout/registry/registry.h"

namespace lookout::registry {

namespace detail {
class Hub;
}

/// The common part of the backends for pods and services. It starts to watch objects on the first
/// request, keeps only the fields that instances need, and follows the objects until it is closed.
/// The destructor of a derived class whose members are used in callbacks must call close().
class InformerDiscovery : public Discovery {
 public:
  ~InformerDiscovery() override;
  InformerDiscovery(const InformerDiscovery&) = delete;
  InformerDiscovery& operator=(const InformerDiscovery&) = delete;

  using Discovery::get_service;
  using Discovery::services;

  InstanceSetPtr get_service(const std::string& name, WaitOptions wait) override;
  InstanceSetPtr latest(const std::string& name) override;
  Watcher watch(const std::string& name) override;
  Subscription subscribe(const std::string& name, SetCallback callback) override;
  Subscription follow(const std::string& name, SetCallback callback) override;
  std::vector<std::string> services(WaitOptions wait) override;
  Freshness freshness() const override;
  void close() override;

  /// The namespaces that are not followed at the moment, with the last failure of each; empty if
  /// all are followed or have not failed yet.
  std::vector<WatchFailure> failures() const;
  /// The objects that are malformed at the moment, by namespace and name; at most 1,000.
  std::vector<Malformed> malformed() const;
  DiscoveryStats stats() const;

 protected:
  explicit InformerDiscovery(std::shared_ptr<detail::Hub> hub);

 private:
  /// The internal name of a service, given the name that the user passed.
  virtual std::string full_name(const std::string& name) const { return name; }

  const std::shared_ptr<detail::Hub> hub_;
};

}  // namespace lookout::registry
