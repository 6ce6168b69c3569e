// The registry that the flags select, for reading.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "cmd/registry/flags.h"
#include "lookout/registry/informer_discovery.h"
#include "lookout/registry/pod_identity.h"
#include "lookout/rest/client.h"

namespace lookout::cmd::registry_cmd {

/// The namespace that the flags select; empty: all namespaces.
std::string namespace_of(const rest::Client& client, const Flags& flags);

/// The pod that the flags select, for writing. Throws Error if none is given and none is found.
registry::PodIdentity find_pod(const rest::Client& client, const Flags& flags);

/// Sends a request to detect errors immediately, because an informer would retry forever. Throws what
/// rest::Client throws.
void probe(const rest::Client& client, const Flags& flags);

/// A label selector for the pods that participate in the registry. For kratos and dubbo.
std::string pod_selector(const Flags& flags);

/// The number of reported malformed announcements.
using Told = std::shared_ptr<std::atomic<std::uint64_t>>;
inline Told make_told() { return std::make_shared<Told::element_type>(0); }

/// A discovery of style kratos, dubbo or services. Reports malformed announcements on standard error.
std::unique_ptr<registry::InformerDiscovery> make_discovery(const rest::Client& client,
                                                            const Flags& flags,
                                                            bool include_unready,
                                                            const Told& told = make_told());

/// Call before the end: waits for reports of malformed announcements, which another thread prints.
void finish_telling(registry::InformerDiscovery& registry, const Told& told);

}  // namespace lookout::cmd::registry_cmd
