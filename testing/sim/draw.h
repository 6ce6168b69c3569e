// Which faults strike.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "lookout/testing/sim/faults.h"
#include "testing/sim/etcd_model.h"
#include "testing/sim/network.h"

namespace lookout::sim {

/// The fault of a request. It depends on the seed, the process and the number of the request alone,
/// so that it stays where it is when other faults go.
std::optional<Fault> draw(const FaultOptions& options, std::uint64_t seed,
                          const RequestNote& request);

/// The same of a call to etcd: it depends on the seed, and which of a client's calls of that kind for
/// that key it is.
std::optional<Fault> draw(const FaultOptions& options, std::uint64_t seed, const EtcdCall& call);

/// The faults of time of a process, in a span of the world's time.
Plan draw(const FaultOptions& options, std::uint64_t seed, const std::string& process,
          std::chrono::milliseconds from, std::chrono::milliseconds to);

/// A fault of that kind for a request that it fits, with a usual duration and status.
Fault typical(FaultKind kind, const RequestNote& request);

/// Whether a request can have that fault.
bool fits(FaultKind kind, const RequestNote& request);
bool fits(FaultKind kind, const EtcdCall& call);

}  // namespace lookout::sim
