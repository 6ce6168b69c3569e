#include "apiserver/controllers/role_aggregation.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "apiserver/controllers/own_writes.h"
#include "apiserver/json.h"
#include "apiserver/storage/after_changes.h"
#include "lookout/api/labels.h"
#include "lookout/api/status.h"
#include "lookout/k8s/meta/v1.h"

namespace lookout::apiserver::controllers {
namespace {

using api::Object;

/// The maximum number of rounds: roles may aggregate aggregated roles, even in a cycle.
constexpr int kRounds = 10;

constexpr std::string_view kManager = "clusterrole-aggregation-controller";

std::vector<api::labels::Selector> selectors_of(const Object& role) {
  std::vector<api::labels::Selector> out;
  for (const api::Value one : role["aggregationRule"]["clusterRoleSelectors"].elements())
    out.push_back(api::labels::from(k8s::meta::v1::LabelSelector(one)));
  return out;
}

/// The rules that a role should have. `roles` are in the order of their names.
json::Document aggregated_rules(const Object& role, const std::vector<Object>& roles) {
  json::Document rules(rapidjson::kArrayType);
  auto& allocator = rules.GetAllocator();
  for (const auto& selector : selectors_of(role)) {
    for (const Object& other : roles) {
      if (other.name() == role.name() || !selector.matches(other["metadata"]["labels"])) continue;
      const json::Document parts = other.to_document();
      const json::Value* list = json::find(parts, "rules");
      if (list == nullptr || !list->IsArray()) continue;
      for (const json::Value& rule : list->GetArray()) {
        if (std::find(rules.Begin(), rules.End(), rule) == rules.End())
          rules.PushBack(json::deep_copy(rule, allocator), allocator);
      }
    }
  }
  return rules;
}

/// The apply configuration with a role's aggregated rules; nullopt if it has them.
std::optional<Object> change_to(const Object& role, const json::Value& rules) {
  const json::Document before = role.to_document();
  const json::Value* present = json::find(before, "rules");
  const bool has_none = present == nullptr || !present->IsArray() || present->Empty();
  if (has_none ? rules.Empty() : *present == rules) return std::nullopt;
  json::Document config(rapidjson::kObjectType);
  auto& allocator = config.GetAllocator();
  for (const char* field : {"apiVersion", "kind"}) json::take(config, before, field, allocator);
  json::Value& metadata = json::child(config, "metadata", allocator);
  json::set(metadata, "name", role.name(), allocator);
  // The version detects concurrent changes of the role.
  json::set(metadata, "resourceVersion", role.resource_version(), allocator);
  json::set(config, "rules", json::deep_copy(rules, allocator), allocator);
  return Object::from(config);
}

}  // namespace

RoleAggregation::RoleAggregation(Context context, Written written)
    : context_(context),
      written_(std::move(written)),
      roles_(context_.resources.table()->find("rbac.authorization.k8s.io", "v1", "clusterroles")) {}

Awaitable<void> RoleAggregation::settle() const {
  for (int round = 0; round < kRounds; ++round) {
    const bool changed = co_await settle_once();
    if (!changed) co_return;
  }
}

Awaitable<bool> RoleAggregation::settle_once() const {
  std::vector<Object> roles = co_await list_all(roles_);
  std::sort(roles.begin(), roles.end(),
            [](const Object& a, const Object& b) { return a.name() < b.name(); });
  bool any = false;
  for (const Object& role : roles) {
    if (!role["aggregationRule"].is_object()) continue;
    std::optional<Object> wanted;
    try {
      wanted = change_to(role, aggregated_rules(role, roles));
    } catch (const api::SelectorError&) {
      continue;  // an invalid selector selects nothing
    }
    if (!wanted) continue;
    resources::Target target;
    target.resource = roles_;
    target.name = role.name();
    try {
      const auto updated = co_await apply(context_, std::move(target), std::move(*wanted),
                                          resources::Part::kMain, kManager);
      written_(updated.object);
      any = true;
    } catch (const api::StatusError& e) {
      // A concurrent write: the next round handles it.
      if (!api::is_conflict(e) && !api::is_not_found(e)) throw;
      any = true;
    }
  }
  co_return any;
}

Awaitable<void> RoleAggregation::follow() const {
  std::function<Awaitable<void>()> react = [this] { return settle(); };
  co_await storage::after_changes(*roles_->storage, std::move(react));
}

}  // namespace lookout::apiserver::controllers
