#include "lookout/registry/clients/naming.h"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

namespace lookout::registry {

std::vector<NamedServer> named_servers(const InstanceSet& set, const NamingOptions& options) {
  std::map<std::string, std::string> tags;
  for (const auto& instance : set) {
    const Endpoint* const endpoint = instance.endpoint(options.scheme);
    if (endpoint == nullptr || !instance.ready) continue;
    const auto tag = instance.metadata.find(options.tag_key);
    tags.emplace(endpoint->authority(), tag == instance.metadata.end() ? "" : tag->second);
  }
  std::vector<NamedServer> out;
  out.reserve(tags.size());
  for (auto& [address, tag] : tags) out.push_back({address, std::move(tag)});
  return out;
}

NamingService::NamingService(Discovery& discovery, const std::string& service,
                             ResetServers reset_servers, NamingOptions options)
    : subscription_(discovery.subscribe(
          service,
          [reset_servers = std::move(reset_servers), options = std::move(options),
           last = std::optional<std::vector<NamedServer>>()](const InstanceSetPtr& set) mutable {
            auto servers = named_servers(*set, options);
            if (last == servers) return;
            reset_servers(servers);
            last = std::move(servers);
          })) {}

}  // namespace lookout::registry
