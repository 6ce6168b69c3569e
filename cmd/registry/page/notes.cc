#include "cmd/registry/page/notes.h"

#include <algorithm>
#include <utility>

namespace lookout::cmd::registry_cmd {
namespace {

using registry::InstancePtr;
using registry::InstanceSet;
using registry::InstanceSetPtr;

bool is_leaving(const PodFacts& pods, const std::string& pod) {
  const auto found = pods.find(pod);
  return found != pods.end() && found->second.leaving;
}

std::string why_not_ready(const PodFacts& pods, const std::string& pod) {
  const auto found = pods.find(pod);
  return found == pods.end() ? "" : found->second.why;
}

bool has(const InstanceSet& set, const std::string& pod) {
  const auto key = [](const InstancePtr& instance) -> auto& { return instance->key(); };
  const auto found = std::ranges::lower_bound(set.instances(), pod, {}, key);
  return found != set.instances().end() && key(*found) == pod;
}

}  // namespace

const Notes& notes_of(const CatalogState& state) {
  static const Notes kNone{std::make_shared<const std::vector<Problem>>(), 0,
                           std::make_shared<const PodFacts>(), nullptr};
  return state.notes ? *state.notes : kNone;
}

void for_each_difference(const CatalogState& before, const CatalogState& after,
                         const OnSet& on_set) {
  // Both are sorted by name.
  auto old = before.services.begin();
  for (const auto& set : after.services) {
    for (; old != before.services.end() && (*old)->service() < set->service(); ++old) {
      on_set(*old, nullptr);
    }
    InstanceSetPtr was;
    if (old != before.services.end() && (*old)->service() == set->service()) was = *old++;
    if (was != set) on_set(was, set);
  }
  for (; old != before.services.end(); ++old) on_set(*old, nullptr);
}

std::shared_ptr<const Notes> NoteTaker::take(const CatalogState& before, const CatalogState& next) {
  const Notes& known = notes_of(before);
  auto notes = look(known);
  // The initial data is not a change.
  if (before.synced && next.synced) record(before, next, notes ? *notes : known);
  return notes ? notes : before.notes;
}

/// Null if nothing has changed.
std::shared_ptr<const Notes> NoteTaker::look(const Notes& before) const {
  Notes out = before;
  if (sources_.problems) {
    auto problems = sources_.problems();
    out.problems_in_all = problems.size();
    if (problems.size() > kMostProblems) problems.resize(kMostProblems);
    if (problems != *before.problems) {
      out.problems = std::make_shared<const std::vector<Problem>>(std::move(problems));
    }
  }
  if (sources_.pods) out.pods = sources_.pods();
  if (sources_.traffic) out.traffic = sources_.traffic();
  const bool same = out.problems == before.problems &&
                    out.problems_in_all == before.problems_in_all && out.pods == before.pods &&
                    out.traffic == before.traffic;
  return same ? nullptr : std::make_shared<const Notes>(std::move(out));
}

void NoteTaker::record(const CatalogState& before, const CatalogState& next, const Notes& notes) {
  for_each_difference(before, next, [&](const InstanceSetPtr& was, const InstanceSetPtr& is) {
    record_set(was, is ? *is : *InstanceSet::make(was->service(), 0, {}), *notes.pods);
  });
  const Notes& known = notes_of(before);
  if (known.pods != notes.pods) record_departures(next, *known.pods, *notes.pods);
}

void NoteTaker::record_set(const InstanceSetPtr& before, const InstanceSet& after,
                           const PodFacts& pods) {
  const auto diff = registry::diff(before, after);
  for (const auto& instance : diff.removed) add(after.service(), instance->key(), "left");
  for (const auto& instance : diff.added) {
    add(after.service(), instance->key(), "came", instance->ready ? "" : "not ready");
  }
  for (const auto& [was, is] : diff.changed) {
    const std::string& pod = is->key();
    if (std::string detail = describe_change(*was, *is); !detail.empty()) {
      add(after.service(), pod, "changed", std::move(detail));
    }
    if (!was->ready && is->ready) add(after.service(), pod, "ready");
    // "leaving" already implies "not ready".
    if (was->ready && !is->ready && !is_leaving(pods, pod)) {
      add(after.service(), pod, "not ready", why_not_ready(pods, pod));
    }
  }
}

void NoteTaker::record_departures(const CatalogState& next, const PodFacts& before,
                                  const PodFacts& after) {
  for (const auto& [pod, fact] : after) {
    if (!fact.leaving || is_leaving(before, pod)) continue;
    for (const auto& set : next.services) {
      if (has(*set, pod)) add(set->service(), pod, "leaving");
    }
  }
}

void NoteTaker::add(const std::string& service, const std::string& pod, const char* event,
                    std::string detail) {
  history_.add(service, {std::chrono::system_clock::now(), pod, event, std::move(detail)});
}

}  // namespace lookout::cmd::registry_cmd
