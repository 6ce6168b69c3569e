#include "cmd/registry/page/cluster_notes.h"

#include <fmt/format.h>

#include <cstddef>
#include <iterator>
#include <utility>

#include "cmd/registry/discovery.h"
#include "cmd/registry/page/clip.h"
#include "lookout/registry/kratos/registry.h"

namespace lookout::cmd::registry_cmd {
namespace {

constexpr std::size_t kLongestDefect = 300;

void append(std::vector<Problem>& out, std::vector<Problem> more) {
  out.insert(out.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace

ClusterNotes::ClusterNotes(const rest::Client& client, const Flags& flags) {
  if (flags.style == "services") return;
  pods_.emplace(client, namespace_of(client, flags), pod_selector(flags));
  if (flags.scrape) scraper_.emplace([this] { return pods_->scrape_targets(); });
}

NoteSources ClusterNotes::sources(std::shared_ptr<registry::InformerDiscovery> discovery) {
  NoteSources out;
  out.problems = [this, discovery = std::move(discovery)] { return problems(*discovery); };
  if (pods_) out.pods = [this] { return pods_->facts(); };
  if (scraper_) out.traffic = [this] { return scraper_->traffic(); };
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
  append(out, malformed(discovery));
  if (scraper_) append(out, scraper_->problems());
  return out;
}

std::vector<Problem> ClusterNotes::malformed(const registry::InformerDiscovery& discovery) const {
  std::vector<Problem> out;
  for (const auto& report : discovery.malformed()) {
    Problem problem{.kind = "malformed",
                    .where = fmt::format("{}/{}", report.ns, report.name),
                    .reason = clip(report.reason, kLongestDefect),
                    .at = report.since};
    if (pods_) problem.service = pods_->label(problem.where, registry::kratos::kServiceNameLabel);
    out.push_back(std::move(problem));
  }
  return out;
}

}  // namespace lookout::cmd::registry_cmd
