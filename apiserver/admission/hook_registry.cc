#include "apiserver/admission/hook_registry.h"

#include <algorithm>
#include <functional>
#include <utility>

#include "apiserver/storage/after_changes.h"

namespace lookout::apiserver::admission {
namespace {

constexpr const char* kGroup = "admissionregistration.k8s.io";

}  // namespace

HookRegistry::HookRegistry(const resources::ResourceRegistry& resources)
    : mutating_{resources.table()->find(kGroup, "v1", "mutatingwebhookconfigurations"),
                &Hooks::mutating},
      validating_{resources.table()->find(kGroup, "v1", "validatingwebhookconfigurations"),
                  &Hooks::validating} {}

std::shared_ptr<const Hooks> HookRegistry::hooks() const {
  const std::lock_guard lock(mutex_);
  return hooks_;
}

Awaitable<void> HookRegistry::refresh() {
  co_await refresh(mutating_);
  co_await refresh(validating_);
}

Awaitable<void> HookRegistry::refresh(Kind& kind) {
  storage::ListOptions options;
  storage::ListResult list = co_await kind.resource->storage->list("", true, std::move(options));
  const storage::Revision revision = list.revision;
  std::vector<api::Object> all = co_await storage::read_all(std::move(list));
  std::sort(all.begin(), all.end(),
            [](const auto& a, const auto& b) { return a.name() < b.name(); });
  HookList hooks;
  for (const api::Object& configuration : all) {
    HookList more = hooks_of(configuration);
    hooks.insert(hooks.end(), more.begin(), more.end());
  }
  const std::lock_guard lock(mutex_);
  // A concurrent call may have read a newer state.
  if (revision < kind.revision) co_return;
  kind.revision = revision;
  auto next = std::make_shared<Hooks>(*hooks_);
  (*next).*kind.list = std::move(hooks);
  hooks_ = std::move(next);
}

Awaitable<void> HookRegistry::follow(Kind& kind) {
  std::function<Awaitable<void>()> react = [this, &kind] { return refresh(kind); };
  co_await storage::after_changes(*kind.resource->storage, std::move(react));
}

}  // namespace lookout::apiserver::admission
