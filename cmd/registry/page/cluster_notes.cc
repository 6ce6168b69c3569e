#include "cmd/registry/page/cluster_notes.h"

#include <iterator>
#include <utility>

#include "cmd/registry/discovery.h"
#include "lookout/registry/kratos/registry.h"

namespace lookout::cmd::registry_cmd {
namespace {

void append(std::vector<Problem>& out, std::vector<Problem> more) {
  out.insert(out.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace

ClusterNotes::ClusterNotes(const rest::Client& client, const Flags& flags)
    : kratos_(flags.style == "kratos") {
  if (flags.style == "services") return;
  pods_.emplace(client, namespace_of(client, flags), pod_selector(flags));
  if (flags.scrape) scraper_.emplace([this] { return pods_->scrape_targets(); });
}

NoteSources ClusterNotes::sources(std::shared_ptr<registry::InformerDiscovery> discovery) {
  NoteSources out;
  out.problems = [this, discovery = std::move(discovery)] { return problems(*discovery); };
  if (pods_) out.pods = [this] { return pods_->facts(); };
  if (scraper_) out.traffic = [this] { return scraper_->traffic(); };
  // A malformed kratos pod is not an instance. A dubbo pod may be one, due to its other records.
  if (kratos_) out.seen = [this](const std::string& pod) { malformed_.forget(pod); };
  return out;
}

std::vector<Problem> ClusterNotes::problems(const registry::InformerDiscovery& discovery) {
  std::vector<Problem> out;
  for (auto& failure : discovery.failures()) {
    out.push_back({.kind = "namespace",
                   .where = std::move(failure.ns),
                   .reason = std::move(failure.reason),
                   .code = failure.code});
  }
  // Not needed if the registry itself reports that it cannot follow pods.
  if (out.empty() && pods_) {
    if (std::string failure = pods_->failure(); !failure.empty()) {
      out.push_back({.kind = "pods", .reason = std::move(failure)});
    }
  }
  append(out, malformed());
  if (scraper_) append(out, scraper_->problems());
  return out;
}

std::vector<Problem> ClusterNotes::malformed() {
  if (pods_) {
    malformed_.forget_gone([this](const std::string& pod, const std::string& version) {
      // In this order, the pods are at least as new as the result.
      const bool current = pods_->has_reached(version);
      return MalformedPods::Sight{.there = pods_->has(pod), .current = current};
    });
  }
  std::vector<Problem> out = malformed_.problems();
  for (auto& problem : out) {
    if (pods_) problem.service = pods_->label(problem.where, registry::kratos::kServiceNameLabel);
  }
  return out;
}

}  // namespace lookout::cmd::registry_cmd
