// The verbs of ResourceClient that take drafts, and verbs composed of others.
#include <fmt/format.h>

#include <string>
#include <utility>

#include "lookout/api/draft.h"
#include "lookout/api/error.h"
#include "lookout/api/status.h"
#include "lookout/rest/client.h"
#include "rest/bound_call.h"
#include "rest/request.h"

namespace lookout::rest {
namespace {

constexpr std::string_view kNoChange = "{}";

Awaitable<api::Object> already_there(api::Object object) { co_return object; }

Awaitable<api::Object> found(Awaitable<api::Object> getting) {
  try {
    co_return co_await std::move(getting);
  } catch (const api::StatusError& e) {
    if (!is_object_missing(e)) throw;
  }
  co_return api::Object();
}

/// Adds the object's resourceVersion to the patch, as a precondition.
std::string if_unchanged(const std::string& patch, const api::Object& original) {
  if (original.resource_version().empty()) {
    throw InvalidArgument(
        fmt::format("{}: a patch of an unchanged object needs one that was read from the server",
                    original.key()));
  }
  const api::ObjectDraft draft(api::Object::parse(patch));
  draft["metadata"]["resourceVersion"].set(original.resource_version());
  return draft.build().to_json();
}

}  // namespace

Awaitable<api::Object> ResourceClient::async_find(std::string_view name, GetOptions options,
                                                  CallOptions call) const {
  return found(async_get(name, std::move(options), std::move(call)));
}

api::Object ResourceClient::find(std::string_view name, GetOptions options,
                                 CallOptions call) const {
  return loop().run(async_find(name, std::move(options), std::move(call)));
}

Awaitable<api::Object> ResourceClient::async_find_subresource(std::string_view name,
                                                              std::string_view subresource,
                                                              CallOptions call) const {
  return found(async_get_subresource(name, subresource, std::move(call)));
}

api::Object ResourceClient::find_subresource(std::string_view name, std::string_view subresource,
                                             CallOptions call) const {
  return loop().run(async_find_subresource(name, subresource, std::move(call)));
}

Awaitable<api::Object> ResourceClient::async_create(const api::ObjectDraft& draft,
                                                    CreateOptions options, CallOptions call) const {
  return async_create(draft.build(), std::move(options), std::move(call));
}

api::Object ResourceClient::create(const api::ObjectDraft& draft, CreateOptions options,
                                   CallOptions call) const {
  return create(draft.build(), std::move(options), std::move(call));
}

Awaitable<api::Object> ResourceClient::async_update(const api::ObjectDraft& draft,
                                                    UpdateOptions options,
                                                    std::string_view subresource,
                                                    CallOptions call) const {
  return async_update(draft.build(), std::move(options), subresource, std::move(call));
}

api::Object ResourceClient::update(const api::ObjectDraft& draft, UpdateOptions options,
                                   std::string_view subresource, CallOptions call) const {
  return update(draft.build(), std::move(options), subresource, std::move(call));
}

Awaitable<api::Object> ResourceClient::patch_of(const api::ObjectDraft& draft, std::string patch,
                                                PatchOptions options, std::string_view subresource,
                                                CallOptions call) const {
  const api::Object& original = draft.original();
  if (original.name().empty())
    throw InvalidArgument("a draft of a new object cannot be patched: create or apply it");
  if (patch == kNoChange) return already_there(original);
  if (options.if_unchanged) patch = if_unchanged(patch, original);
  const ResourceClient there(client_, resource_, detail::namespace_for(resource_, ns_, original),
                             binding_);
  return there.async_patch(original.name(), PatchType::kMerge, std::move(patch), std::move(options),
                           subresource, std::move(call));
}

Awaitable<api::Object> ResourceClient::async_patch(const api::ObjectDraft& draft,
                                                   PatchOptions options, CallOptions call) const {
  return patch_of(draft, draft.diff(), std::move(options), {}, std::move(call));
}

api::Object ResourceClient::patch(const api::ObjectDraft& draft, PatchOptions options,
                                  CallOptions call) const {
  return loop().run(async_patch(draft, std::move(options), std::move(call)));
}

Awaitable<api::Object> ResourceClient::async_patch_status(const api::ObjectDraft& draft,
                                                          PatchOptions options,
                                                          CallOptions call) const {
  return patch_of(draft, draft.diff("status"), std::move(options), "status", std::move(call));
}

api::Object ResourceClient::patch_status(const api::ObjectDraft& draft, PatchOptions options,
                                         CallOptions call) const {
  return loop().run(async_patch_status(draft, std::move(options), std::move(call)));
}

Awaitable<api::Object> ResourceClient::async_apply(api::Object object, ApplyOptions options,
                                                   CallOptions call) const {
  detail::add_defaults(options, binding_);
  if (options.field_manager.empty())
    throw InvalidArgument(fmt::format(
        "apply {}: no field manager is given: set ApplyOptions::field_manager", object.key()));
  if (object["metadata"].contains("managedFields")) {
    throw InvalidArgument(fmt::format(
        "apply {}: the object was read from the server (it has managedFields), so {} would own all "
        "of its fields: apply a draft with only the fields that {} manages",
        object.key(), options.field_manager, options.field_manager));
  }
  PatchOptions patch;
  patch.dry_run = options.dry_run;
  patch.field_manager = std::move(options.field_manager);
  patch.field_validation = std::move(options.field_validation);
  patch.force = options.force;
  const ResourceClient there(client_, resource_, detail::namespace_for(resource_, ns_, object),
                             binding_);
  return there.async_patch(object.name(), PatchType::kApply, object.to_json(), std::move(patch), {},
                           std::move(call));
}

api::Object ResourceClient::apply(const api::Object& object, ApplyOptions options,
                                  CallOptions call) const {
  return loop().run(async_apply(object, std::move(options), std::move(call)));
}

Awaitable<api::Object> ResourceClient::async_apply(const api::ObjectDraft& draft,
                                                   ApplyOptions options, CallOptions call) const {
  return async_apply(draft.build(), std::move(options), std::move(call));
}

api::Object ResourceClient::apply(const api::ObjectDraft& draft, ApplyOptions options,
                                  CallOptions call) const {
  return apply(draft.build(), std::move(options), std::move(call));
}

}  // namespace lookout::rest
