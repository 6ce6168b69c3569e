#include "cmd/cluster/revisions.h"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

#include "cmd/cluster/names.h"
#include "lookout/controller/owner_references.h"
#include "lookout/k8s/apps/v1_draft.h"

namespace lookout::cmd::cluster {
namespace {

using k8s::apps::v1::ControllerRevision;

void create(const api::Object& owner, const std::string& name, std::string_view hash,
            std::string_view hash_label, std::int64_t number, Context& context) {
  const auto revision = ControllerRevision::draft(name, owner.ns());
  const api::Value pod_template = owner["spec"]["template"];
  for (const auto& [key, value] : pod_template["metadata"]["labels"].members())
    revision.metadata().labels().set(key, value.as_string());
  revision.metadata().labels().set(hash_label, hash);
  for (const auto& [key, value] : owner.annotations().members())
    revision.metadata().annotations().set(key, value.as_string());
  revision.set_revision(number);
  revision["data"]["spec"]["template"].set(pod_template);
  revision["data"]["spec"]["template"]["$patch"].set("replace");
  context.create(revision);
}

}  // namespace

std::string revision_name(const api::Object& owner, std::string_view hash) {
  return fmt::format("{}-{}", owner.name(), hash);
}

void keep_revisions(const api::Object& owner, std::string_view hash, std::string_view hash_label,
                    const std::set<std::string>& used, std::int32_t limit, Context& context) {
  const std::string present = revision_name(owner, hash);
  std::vector<ControllerRevision> all;
  for (auto& revision : context.list<ControllerRevision>(owner.ns())) {
    const auto of = controller::controller_of(revision);
    if (of && of->uid() == owner.uid()) all.push_back(std::move(revision));
  }
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return a.revision() < b.revision(); });
  const auto known =
      std::find_if(all.begin(), all.end(), [&](const auto& one) { return one.name() == present; });
  const std::int64_t newest = all.empty() ? 0 : all.back().revision();
  if (known == all.end()) {
    create(owner, present, hash, hash_label, newest + 1, context);
  } else if (known->revision() < newest) {
    const auto change = known->edit();
    change.set_revision(newest + 1);
    context.patch(change);
  }
  std::erase_if(all, [&](const auto& one) {
    return one.name() == present || used.contains(std::string(one.name()));
  });
  const auto most = static_cast<std::size_t>(std::max(0, limit));
  for (std::size_t i = 0; i + most < all.size(); ++i) context.remove(all[i]);
}

}  // namespace lookout::cmd::cluster
