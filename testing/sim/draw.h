// Draws faults.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>

#include "lookout/testing/sim/faults.h"
#include "testing/sim/etcd_model.h"
#include "testing/sim/network.h"

namespace lookout::sim {

/// Draws the fault of a request. It depends only on the seed, the process and the request's number,
/// so it stays the same when other faults are removed.
std::optional<Fault> draw(const FaultOptions& options, std::uint64_t seed,
                          const RequestNote& request);

/// Draws the fault of a call to etcd. It depends only on the seed, the client, the method, the key and
/// the call's number among those.
std::optional<Fault> draw(const FaultOptions& options, std::uint64_t seed, const EtcdCall& call);

/// Draws the timed faults of a process for a period.
Plan draw(const FaultOptions& options, std::uint64_t seed, const std::string& process,
          std::chrono::milliseconds from, std::chrono::milliseconds to);

/// A fault of this kind for a suitable request, with a typical duration and status.
Fault typical(FaultKind kind, const RequestNote& request);

/// True if this fault can strike the request.
bool fits(FaultKind kind, const RequestNote& request);
bool fits(FaultKind kind, const EtcdCall& call);

}  // namespace lookout::sim
