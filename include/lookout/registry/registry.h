// The interfaces of service registries: announcing instances, and finding them.
#pragma once

#include <chrono>
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

/// The instance cannot be registered. what() names the field and the rule that it breaks.
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

/// There was no data in time. what() names what did not come, and the last answer of the server, or
/// why there was none.
class NotSynced : public Error {
 public:
  using Error::Error;
};

/// Announces instances (kratos' registry.Registrar).
class Registrar {
 public:
  virtual ~Registrar() = default;

  /// Announces the instance, in place of what was announced before. Throws RegistrationError for an
  /// instance that cannot be announced, and what rest::Client throws.
  virtual void register_instance(const ServiceInstance& instance, rest::CallOptions call) = 0;
  /// Takes the announcement back.
  virtual void deregister_instance(const ServiceInstance& instance, rest::CallOptions call) = 0;

  void register_instance(const ServiceInstance& instance) { register_instance(instance, {}); }
  void deregister_instance(const ServiceInstance& instance) { deregister_instance(instance, {}); }
};

/// Finds instances (kratos' registry.Discovery). All functions may be called from any thread.
class Discovery {
 public:
  virtual ~Discovery() = default;

  /// The instances now; an empty set if there is no such service. The first call waits until the
  /// first data is there: throws NotSynced if that does not come in time or a stop is requested.
  /// A namespace that the server refuses (forbidden, for example) is not waited for; if it refuses
  /// all of them, that is NotSynced at once, with the reasons. Must not be called on the event
  /// loop.
  virtual InstanceSetPtr get_service(const std::string& name, WaitOptions wait) = 0;
  InstanceSetPtr get_service(const std::string& name) { return get_service(name, {}); }

  /// The same without waiting: what is known, an empty set as long as nothing is. Never null.
  virtual InstanceSetPtr latest(const std::string& name) = 0;

  /// Throws InvalidArgument if the registry is closed, as subscribe() does.
  virtual Watcher watch(const std::string& name) = 0;
  virtual Subscription subscribe(const std::string& name, SetCallback callback) = 0;
  /// As subscribe(), for callbacks that return soon and never block (feeds and balancers): they do
  /// not wait for a thread when all that callbacks have are blocked.
  virtual Subscription follow(const std::string& name, SetCallback callback) {
    return subscribe(name, std::move(callback));
  }

  /// The names of all services that are announced, sorted, those without a ready instance included;
  /// waits and throws as get_service().
  virtual std::vector<std::string> services(WaitOptions wait) = 0;
  std::vector<std::string> services() { return services({}); }

  virtual Freshness freshness() const = 0;

  /// Ends all watchers and subscriptions, and what runs behind them. Waits for calls of user code
  /// that are running, unless it is called by one of them or on the event loop: once it has
  /// returned there are no more. Doing it again changes nothing, but waits as well.
  virtual void close() = 0;
};

}  // namespace lookout::registry
