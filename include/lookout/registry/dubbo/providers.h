// Providers: the providers of dubbo services, as instances.
#pragma once

#include <string>

#include "lookout/registry/informer_discovery.h"
#include "lookout/registry/options.h"
#include "lookout/rest/client.h"

namespace lookout::registry::dubbo {

/// The names that identify providers; the defaults are those of ClientOptions.
struct ProviderNames {
  std::string label = "dubbo.io/label";
  std::string consumer_label_value = "dubbo.io.consumer";
  std::string provider_label_value = "dubbo.io.provider";
  std::string common_label_value = "dubbo.io-value";
  std::string annotation = "dubbo.io/annotation";
};

/// Finds dubbo's providers through the same interface as the services of the other backends, for
/// balancers, feeds and other code that needs instances instead of records.
///
/// A record whose key is "/ROOT/INTERFACE/providers/URL" (the URL percent-encoded) is an instance.
/// Its service has dubbo's name, "GROUP/INTERFACE:VERSION", with the group and the version only if
/// the URL has them ("com.example.User" otherwise; version 0.0.0 counts as none). A consumer
/// accepts providers of exactly its group and version or, as in dubbo, any with "*":
/// "*/INTERFACE:1.0", "GROUP/INTERFACE:*", "*/INTERFACE:*". services() does not list these names.
/// If several services of a pod match such a name, the last one in the order of names is used.
/// All records of a pod for one service, for example with several protocols, form one instance.
/// Records that an earlier run of the program has left on its pod do not count: those of the same
/// protocol with another "pid" and an older "timestamp", and those of the same endpoint with an
/// older "timestamp" or, if both have the same or none, at an earlier place in the annotation. The
/// host 0.0.0.0 or :: stands for the pod's address.
///
/// `id` is the address and the port, `endpoints` has "protocol://host:port", `version` is the
/// version of the interface, and `metadata` has the URL's other parameters (including "weight", so
/// that BalancerPolicy::weighted() behaves like dubbo). `zone` is the URL's parameter, or else the
/// pod's zone.
///
/// A record whose URL cannot be parsed, or is not UTF-8 without NUL bytes after unescaping, is
/// reported (Options::on_malformed) and skipped. The other records count. If the whole annotation is
/// unreadable, watched services keep the pod's last instance.
///
/// Serves pods that are running, ready and not being deleted. Options::include_unready includes all
/// others, whatever their state, as dubbo-go does.
class Providers : public InformerDiscovery {
 public:
  explicit Providers(const rest::Client& client, const Options& options = {},
                     const ProviderNames& names = {});
};

}  // namespace lookout::registry::dubbo
