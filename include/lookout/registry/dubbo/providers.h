// The providers of dubbo services, as instances.
#pragma once

#include <string>

#include "lookout/registry/informer_discovery.h"
#include "lookout/registry/options.h"
#include "lookout/rest/client.h"

namespace lookout::registry::dubbo {

/// Where providers are looked for; the defaults are those of ClientOptions.
struct ProviderNames {
  std::string label = "dubbo.io/label";
  std::string consumer_label_value = "dubbo.io.consumer";
  std::string provider_label_value = "dubbo.io.provider";
  std::string common_label_value = "dubbo.io-value";
  std::string annotation = "dubbo.io/annotation";
};

/// Finds what dubbo's providers announce behind the same interface as the services of the other
/// backends: for balancers, feeds and whatever else wants instances instead of records.
///
/// A record whose key is "/ROOT/INTERFACE/providers/URL" (the URL percent-encoded) is an instance.
/// Its service is called as dubbo calls it, "GROUP/INTERFACE:VERSION", the group and the version
/// only if the URL has them ("com.example.User" otherwise; a version 0.0.0 is none): a consumer
/// gets on with providers of exactly its group and version, or, as in dubbo, of any if it asks for
/// "*": "*/INTERFACE:1.0", "GROUP/INTERFACE:*", "*/INTERFACE:*". services() does not list these; a pod
/// that announces several services of them is found with the last, in the order of their names. All that one pod announces for one
/// service, with several protocols for example, is one instance. Records that an earlier life of the
/// program has left on its pod do not count: of one protocol those with another "pid" and an older
/// "timestamp", of one endpoint those with an older "timestamp".
///
/// `id` is the address and the port, `endpoints` has "protocol://host:port", `version` the version
/// of the interface, `metadata` the URL's other parameters ("weight" among them, so that
/// BalancerPolicy::weighted() does what dubbo does). `zone` is the parameter, else the pod's.
///
/// Serves pods that run, are ready and are not being deleted. Options::include_unready
/// brings all others back, whatever state they are in: dubbo-go does not ask how its pods are.
class Providers : public InformerDiscovery {
 public:
  explicit Providers(const rest::Client& client, const Options& options = {},
                     const ProviderNames& names = {});
};

}  // namespace lookout::registry::dubbo
