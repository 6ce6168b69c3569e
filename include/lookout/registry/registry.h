// The interfaces of service registries.
#pragma once

#include <chrono>
#include <memory>
#include <stop_token>
#include <string>
#include <utility>
#include <vector>

#include "lookout/api/error.h"
#include "lookout/base/attributes.h"
#include "lookout/registry/instance_set.h"
#include "lookout/registry/watcher.h"
#include "lookout/rest/options.h"

namespace lookout::registry {

/// The instance cannot be registered. what() names the field and the rule that it violates.
class RegistrationError : public Error {
 public:
  using Error::Error;
};

/// The limits of a wait for the first data.
struct WaitOptions {
  LOOKOUT_OPTION std::stop_token stop = {};
  /// 0: the registry's own limit.
  std::chrono::milliseconds timeout{0};
};

/// There was no data in time. what() names the missing data and the server's last answer, or why
/// there was none.
class NotSynced : public Error {
 public:
  using Error::Error;
};

/// Announces instances (kratos' registry.Registrar).
class Registrar {
 public:
  virtual ~Registrar() = default;

  /// Announces the instance, replacing an earlier announcement. Throws RegistrationError for an
  /// instance that cannot be announced, and what rest::Client throws.
  virtual void register_instance(const ServiceInstance& instance, rest::CallOptions call) = 0;
  /// Withdraws the announcement.
  virtual void deregister_instance(const ServiceInstance& instance, rest::CallOptions call) = 0;
  /// Withdraws what an earlier run of the program has left announced under this name, for example
  /// because its container was restarted in the pod. The default does nothing.
  virtual void withdraw_earlier(const ServiceInstance& /*instance*/, rest::CallOptions /*call*/) {}
  /// The part that does this, which may outlive this object: a Registration keeps it. Empty (the
  /// default): this object must outlive its registrations.
  virtual std::shared_ptr<Registrar> shared() { return {}; }

  void register_instance(const ServiceInstance& instance) { register_instance(instance, {}); }
  void deregister_instance(const ServiceInstance& instance) { deregister_instance(instance, {}); }
};

/// Finds instances (kratos' registry.Discovery). All functions may be called from any thread.
class Discovery {
 public:
  virtual ~Discovery() = default;

  /// The current instances; an empty set if there is no such service. The first call waits for the
  /// first data and throws NotSynced if it does not arrive in time or a stop is requested. It does
  /// not wait for a namespace that the server refuses (for example, 403); if the server refuses all
  /// namespaces, it throws NotSynced immediately, with the reasons. Must not be called on the event
  /// loop.
  virtual InstanceSetPtr get_service(const std::string& name, WaitOptions wait) = 0;
  InstanceSetPtr get_service(const std::string& name) { return get_service(name, {}); }

  /// Like get_service(), without waiting: an empty set until there is data. Never null.
  virtual InstanceSetPtr latest(const std::string& name) = 0;

  /// Throws InvalidArgument if the registry is closed; so does subscribe().
  virtual Watcher watch(const std::string& name) = 0;
  virtual Subscription subscribe(const std::string& name, SetCallback callback) = 0;
  /// Like subscribe(), for callbacks that return soon and never block (feeds and balancers): they
  /// do not wait when all threads for callbacks are blocked.
  virtual Subscription follow(const std::string& name, SetCallback callback) {
    return subscribe(name, std::move(callback));
  }

  /// The sorted names of all announced services, including those without a ready instance. Waits
  /// and throws like get_service().
  virtual std::vector<std::string> services(WaitOptions wait) = 0;
  std::vector<std::string> services() { return services({}); }

  virtual Freshness freshness() const = 0;

  /// Ends all watchers, all subscriptions and the informers. Waits for running user code, unless it
  /// is called by user code or on the event loop; afterwards no user code runs. May be called
  /// again; it then only waits.
  virtual void close() = 0;
};

}  // namespace lookout::registry
