// HookRegistry: the registered webhooks.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "apiserver/admission/hook.h"
#include "apiserver/resources/resource_registry.h"
#include "lookout/apiserver/storage/interface.h"

namespace lookout::apiserver::admission {

using HookList = std::vector<std::shared_ptr<const Hook>>;

/// All hooks at one point in time: configurations sorted by name, each with its order.
struct Hooks {
  HookList mutating;
  HookList validating;
};

/// Watches the configurations in the storage. Thread-safe.
class HookRegistry {
 public:
  /// `resources` must outlive it.
  explicit HookRegistry(const resources::ResourceRegistry& resources);

  std::shared_ptr<const Hooks> hooks() const;

  /// Reads the configurations. When this returns, their webhooks are called.
  Awaitable<void> refresh();
  /// These call refresh() after each change of a configuration. They return when the storage's watch
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
