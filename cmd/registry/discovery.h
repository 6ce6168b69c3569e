// The registry that the flags mean, for looking.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "cmd/registry/flags.h"
#include "lookout/registry/informer_discovery.h"
#include "lookout/registry/pod_identity.h"
#include "lookout/rest/client.h"

namespace lookout::cmd::registry_cmd {

/// Where the flags say to look; empty means all namespaces.
std::string namespace_of(const rest::Client& client, const Flags& flags);

/// The pod that the flags mean, for writing. Throws Error if none is given and none is found.
registry::PodIdentity find_pod(const rest::Client& client, const Flags& flags);

/// What is wrong from the start is said at once: an informer would go on trying for ever. Throws
/// what rest::Client throws.
void probe(const rest::Client& client, const Flags& flags);

/// The pods that take part in the registry, as a label selector. For kratos and dubbo.
std::string pod_selector(const Flags& flags);

/// How many malformed announcements have been told.
using Told = std::shared_ptr<std::atomic<std::uint64_t>>;
using OnMalformed = std::function<void(const registry::Malformed&)>;
inline Told make_told() { return std::make_shared<Told::element_type>(0); }

/// Of style kratos, dubbo or services. Reports malformed announcements on standard error and to
/// `on_malformed`.
std::unique_ptr<registry::InformerDiscovery> make_discovery(const rest::Client& client,
                                                            const Flags& flags,
                                                            bool include_unready,
                                                            const Told& told = make_told(),
                                                            const OnMalformed& on_malformed = {});

/// Before the end: what is known to be malformed is told on a thread that may be behind.
void finish_telling(registry::InformerDiscovery& registry, const Told& told);

}  // namespace lookout::cmd::registry_cmd
