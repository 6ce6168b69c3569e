// Discovery from objects that informers follow.
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

/// What the backends for pods and services have in common. It begins to watch objects when it is
/// first asked, keeps of them only what instances are made of, and follows them until it is closed.
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
  std::vector<std::string> services(WaitOptions wait) override;
  Freshness freshness() const override;
  void close() override;

  DiscoveryStats stats() const;

 protected:
  explicit InformerDiscovery(std::shared_ptr<detail::Hub> hub);

 private:
  /// The name under which a service is kept, for the one that the user gave.
  virtual std::string full_name(const std::string& name) const { return name; }

  const std::shared_ptr<detail::Hub> hub_;
};

}  // namespace lookout::registry
