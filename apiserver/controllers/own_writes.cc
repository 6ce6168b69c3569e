#include "apiserver/controllers/own_writes.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "apiserver/controllers/beside.h"
#include "apiserver/fields/managed_fields.h"
#include "apiserver/json.h"
#include "apiserver/names.h"
#include "apiserver/resources/field_owners.h"

namespace lookout::apiserver::controllers {
namespace {

using resources::Part;
using resources::Store;
using resources::Target;

std::optional<fields::FieldManager> owner(const Context& context, const Target& target,
                                          std::string_view manager) {
  if (!context.managed_fields) return std::nullopt;
  return resources::field_manager(std::string(manager), context.resources.table(), target.resource,
                                  {});
}

}  // namespace

Awaitable<bool> create_once(const Context& context, Target target, Object object,
                            std::string_view manager) {
  const Object present = co_await target.resource->objects().get(target.key());
  if (present) co_return false;
  const auto fields = owner(context, target, manager);
  target.fields = fields ? &*fields : nullptr;
  try {
    co_await context.store.create(std::move(target), std::move(object));
    co_return true;
  } catch (const StatusError& e) {
    if (!api::is_already_exists(e)) throw;
  }
  co_return false;
}

Awaitable<void> create_or_update(const Context& context, Target target, Object object,
                                 Store::Change change, std::string_view manager) {
  const bool created = co_await create_once(context, target, std::move(object), manager);
  if (created) co_return;
  const auto fields = owner(context, target, manager);
  target.fields = fields ? &*fields : nullptr;
  try {
    co_await context.store.update(std::move(target), std::move(change));
  } catch (const StatusError& e) {
    if (!api::is_not_found(e)) throw;
  }
}

Awaitable<Store::Updated> apply(const Context& context, Target target, Object config, Part part,
                                std::string_view manager) {
  const auto fields = std::make_shared<const fields::FieldManager>(
      resources::field_manager(std::string(manager), context.resources.table(), target.resource,
                               part == Part::kStatus ? "status" : ""));
  // Shared, because changes are copied.
  const auto document = std::make_shared<const Document>(config.to_document());
  Store::Change change = [fields, document,
                          records = context.managed_fields](const Object& present) {
    const Document live = present.to_document();
    Document applied = fields->apply(&live, *document, true);
    if (!records) fields::set_managed_fields(applied, json::Value(), applied.GetAllocator());
    return Object::from(applied);
  };
  Store::Updated updated =
      co_await context.store.update(std::move(target), std::move(change), part);
  co_return updated;
}

Awaitable<void> remove(const Context& context, Target target) {
  try {
    co_await context.store.remove(std::move(target));
  } catch (const StatusError& e) {
    if (!api::is_not_found(e)) throw;
  }
}

Awaitable<std::vector<Object>> list_all(resources::ServedResourcePtr resource) {
  storage::ListOptions options;
  storage::ListResult list = co_await resource->storage->list("", true, std::move(options));
  std::vector<Object> objects = co_await storage::read_all(std::move(list));
  co_return objects;
}

Target target_of(resources::ServedResourcePtr resource, const Object& object) {
  Target target;
  target.resource = std::move(resource);
  target.name = object.name();
  return target;
}

Awaitable<void> keep(const Context& context, KeptObjects kept, std::string_view manager) {
  std::function<Awaitable<void>(std::size_t)> work = [&](std::size_t index) {
    const Object& wanted = kept.wanted[index];
    Store::Change change = [wanted, revise = kept.revise](const Object& present) {
      return revise(present, wanted);
    };
    return create_or_update(context, target_of(kept.resource, wanted), wanted, std::move(change),
                            manager);
  };
  co_await run_beside(kept.wanted.size(), kWritesAtOnce, std::move(work));
  const std::vector<Object> present = co_await list_all(kept.resource);
  for (const Object& object : present) {
    const bool is_wanted =
        std::any_of(kept.wanted.begin(), kept.wanted.end(),
                    [&](const Object& wanted) { return wanted.name() == object.name(); });
    if (is_wanted || !kept.is_surplus(object)) continue;
    co_await remove(context, target_of(kept.resource, object));
  }
}

}  // namespace lookout::apiserver::controllers
