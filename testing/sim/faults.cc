#include "lookout/testing/sim/faults.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace lookout::sim {
namespace {

constexpr std::array<std::string_view, kFaultKinds> kNames{"lost request",
                                                           "lost answer",
                                                           "failed after the write",
                                                           "refused",
                                                           "delayed",
                                                           "no answer",
                                                           "watch cut",
                                                           "watch stalled",
                                                           "watch expired",
                                                           "late events",
                                                           "repeated events",
                                                           "stale read",
                                                           "crash before it",
                                                           "crash after it",
                                                           "an edit before it",
                                                           "crash",
                                                           "freeze",
                                                           "partition",
                                                           "clock jump",
                                                           "no leader",
                                                           "compaction",
                                                           "lag"};

}  // namespace

std::string_view name_of(FaultKind kind) { return kNames.at(static_cast<std::size_t>(kind)); }

bool is_of_time(FaultKind kind) { return kind >= FaultKind::kCrash; }

std::string describe(const Fault& fault) {
  const double length = std::chrono::duration<double>(fault.duration).count();
  std::string what(name_of(fault.kind));
  if (fault.kind == FaultKind::kRefuse) what += fmt::format(" with {}", fault.status);
  if (fault.duration.count() != 0) what += fmt::format(" ({:.3f} s)", length);
  if (is_of_time(fault.kind))
    return fmt::format("{}, at {:.3f} s: {}", fault.process, static_cast<double>(fault.at) / 1000.0,
                       what);
  if (!fault.call.empty())
    return fmt::format("{}, {}, call {}: {}", fault.process, fault.call, fault.at, what);
  return fmt::format("{}, request {}: {}", fault.process, fault.at, what);
}

FaultOptions FaultOptions::without(std::initializer_list<FaultKind> some) const {
  FaultOptions out = *this;
  std::erase_if(out.kinds, [&](FaultKind kind) {
    return std::find(some.begin(), some.end(), kind) != some.end();
  });
  return out;
}

FaultOptions no_faults() { return {}; }

FaultOptions all_faults() {
  FaultOptions out;
  for (std::size_t i = 0; i < kFaultKinds; ++i) out.kinds.push_back(static_cast<FaultKind>(i));
  return out;
}

FaultOptions only(std::initializer_list<FaultKind> some) {
  FaultOptions out;
  out.kinds = some;
  return out;
}

}  // namespace lookout::sim
