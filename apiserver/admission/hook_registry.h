// The webhooks that are registered.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "apiserver/admission/hook.h"
#include "apiserver/resources/resource_registry.h"
#include "lookout/apiserver/storage/interface.h"

namespace lookout::apiserver::admission {

using HookList = std::vector<std::shared_ptr<const Hook>>;

/// All hooks at one moment: configurations by name, in each as they are written there.
struct Hooks {
  HookList mutating;
  HookList validating;
};

/// Follows the configurations in the storage. Safe to use from many threads.
class HookRegistry {
 public:
  /// `resources` must outlive it.
  explicit HookRegistry(const resources::ResourceRegistry& resources);

  std::shared_ptr<const Hooks> hooks() const;

  /// Looks at the configurations now: what they register is called when this returns.
  Awaitable<void> refresh();
  /// Call refresh() after each change of a configuration. They return when the storage's watch
  /// ends.
  Awaitable<void> follow_mutating() { return follow(mutating_); }
  Awaitable<void> follow_validating() { return follow(validating_); }

 private:
  struct Kind {
    resources::ServedResourcePtr resource;
    HookList Hooks::*list;
    storage::Revision revision = 0;  // guarded by mutex_
  };

  Awaitable<void> follow(Kind& kind);
  Awaitable<void> refresh(Kind& kind);

  Kind mutating_;
  Kind validating_;
  mutable std::mutex mutex_;
  std::shared_ptr<const Hooks> hooks_ = std::make_shared<Hooks>();  // guarded by mutex_
};

}  // namespace lookout::apiserver::admission
