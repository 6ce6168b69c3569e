#include "apiserver/resources/store.h"

#include <fmt/format.h>

#include <exception>
#include <utility>

#include "apiserver/fields/field_manager.h"
#include "apiserver/names.h"
#include "apiserver/quota/namespace_limits.h"
#include "apiserver/resources/admission.h"
#include "apiserver/resources/gated_fields.h"
#include "apiserver/resources/object_meta.h"
#include "apiserver/resources/priority_admission.h"
#include "apiserver/resources/service_account_admission.h"
#include "apiserver/resources/service_allocator.h"
#include "apiserver/resources/structural_schema.h"
#include "apiserver/resources/write_steps.h"
#include "apiserver/storage/unknown_outcome.h"
#include "lookout/base/detail/log.h"

namespace lookout::apiserver::resources {

using storage::StorageError;

namespace {

bool stores_pods(const ServedResource& resource) {
  return !resource.custom && resource.type.group.empty() && resource.type.plural == "pods";
}

}  // namespace

std::string Target::key() const {
  if (!resource->type.namespaced) return name;
  if (ns.empty()) return {};
  return ns + "/" + name;
}

StatusError as_status(const StorageError& error, const Target& target, std::string_view operation) {
  const api::Resource& type = target.resource->type;
  switch (error.code()) {
    case StorageError::Code::kKeyNotFound:
      return StatusError::not_found(type.group, type.plural, target.name);
    case StorageError::Code::kKeyExists:
      if (operation == "create")
        return StatusError::already_exists(type.group, type.plural, target.name);
      [[fallthrough]];
    case StorageError::Code::kResourceVersionConflicts:
    case StorageError::Code::kInvalidObject:
      return StatusError::conflict(type.group, type.plural, target.name, error.what());
    case StorageError::Code::kUnreachable:
    case StorageError::Code::kTimeout:
      return StatusError::server_timeout(type.group, type.plural, operation, 2);
    case StorageError::Code::kCorruptObject:
      break;
  }
  return StatusError::internal_error(error.what());
}

void throw_as_status(const StorageError& error, const Target& target, std::string_view operation) {
  throw as_status(error, target, operation);
}

Awaitable<Object> Store::get(Target target, storage::Revision not_older_than) const {
  Object stored = co_await target.resource->objects().get(target.key(), not_older_than);
  if (!stored) {
    throw StatusError::not_found(target.resource->type.group, target.resource->type.plural,
                                 target.name);
  }
  co_return target.resource->from_storage(stored);
}

Awaitable<void> Store::check_namespace(const Target& target, std::string_view name) const {
  if (!target.resource->type.namespaced || target.ns.empty()) co_return;
  const Object ns = co_await namespaces_->storage->get(target.ns);
  if (!ns) throw StatusError::not_found("", "namespaces", target.ns);
  if (!is_deleting(ns)) co_return;
  const api::Resource& type = target.resource->type;
  api::Status status =
      StatusError::forbidden(
          type.group, type.plural, name,
          fmt::format("unable to create new content in namespace {} because it is being terminated",
                      target.ns))
          .status();
  status.causes.push_back({"NamespaceTerminating",
                           fmt::format("namespace {} is being terminated", target.ns),
                           "metadata.namespace"});
  throw StatusError(std::move(status));
}

/// Prepares an object for its creation.
Object Store::prepare_new(const Target& target, const Object& object) const {
  const ServedResource& resource = *target.resource;
  const Strategy& strategy = *resource.strategy;
  Document document = typed_document(resource, object);
  Allocator& allocator = document.GetAllocator();
  json::Value& metadata = json::child(document, "metadata", allocator);
  const std::string_view version = json::text(metadata, "resourceVersion");
  if (!version.empty() && version != "0")
    throw plain_failure(500, "resourceVersion should not be set on objects to be created");
  json::erase(metadata, "resourceVersion");
  initialize_metadata(metadata, allocator);
  drop_empty_metadata(metadata);
  ensure_namespace(metadata, resource.type.namespaced ? target.ns : std::string(), allocator);
  const std::string prefix(json::text(metadata, "generateName"));
  if (!prefix.empty() && json::text(metadata, "name").empty())
    json::set(metadata, "name", generate_name(prefix), allocator);
  // Kinds without generations keep the creator's value.
  if (strategy.generation != Generation::kNone && strategy.generation != Generation::kChangesOfSpec)
    json::set(metadata, "generation", json::Value(1), allocator);
  if (resource.has_status() && !strategy.keeps_status_on_create) json::erase(document, "status");
  if (!resource.custom) add_parts(resource, document, allocator);
  if (strategy.set_defaults != nullptr) strategy.set_defaults(document, allocator);
  complete(resource, document, allocator);
  if (target.fields != nullptr) target.fields->update(document, nullptr, allocator);
  drop_gated_fields(resource, document, nullptr);
  if (strategy.prepare_for_create != nullptr) strategy.prepare_for_create(document, allocator);
  settle(resource, document, allocator);
  return Object::from(document);
}

Awaitable<Object> Store::create(Target target, Object object, bool dry_run) const {
  const ServedResource& resource = *target.resource;
  if (resource.terminating) {
    throw StatusError::forbidden(
        resource.type.group, resource.type.plural, object.name(),
        "create not allowed while custom resource definition is terminating");
  }
  const bool generated =
      object.name().empty() && !object["metadata"]["generateName"].as_string().empty();
  co_await check_namespace(target, object.name());
  if (stores_pods(resource)) {
    // Fields that admission sets have no owner.
    object = owned(target, object, Object());
    target.fields = nullptr;
    object = co_await complete_pod(target, std::move(object), true);
  }
  const bool asked = asks(target, Write::Operation::kCreate);
  if (asked) {
    const Object wanted = object;
    object = co_await admit_new(target, wanted);
    // Admission's changes have no owner.
    if (!object.same(wanted)) target.fields = nullptr;
  }
  const bool limited = is_limited(target);
  for (int attempt = 1;; ++attempt) {
    Object prepared = prepare_new(target, object);
    target.name = prepared.name();
    Causes causes;
    validate_metadata(resource, prepared, causes);
    validate_finalizer_names(resource, prepared, causes);
    Object stored = resource.to_storage(prepared);
    if (resource.strategy->validate != nullptr) resource.strategy->validate(stored, causes);
    if (resource.strategy->validate_new != nullptr) resource.strategy->validate_new(stored, causes);
    if (resource.schema) validate_schema(prepared, Object(), resource.schema.body(), causes);
    if (resource.custom && resource.scale) validate_scale(prepared, *resource.scale, true, causes);
    if (resource.schema) add_unchecked_rules(resource.schema.body(), causes);
    throw_if_invalid(resource, prepared.name(), std::move(causes));
    ServiceClaims taken;
    std::optional<quota::NamespaceLimits::Charge> charge;
    std::exception_ptr refused;
    try {
      if (allocates(target)) {
        ServiceClaims none;
        prepared = co_await services_->complete(prepared, std::move(none), dry_run, taken);
        stored = resource.to_storage(prepared);
      }
      if (limited) co_await limits_->check(target.resource, target.ns, prepared, Object());
      if (asked && service_accounts_ != nullptr && stores_pods(resource))
        co_await check_service_account(service_accounts_, target.ns, prepared);
      if (asked) {
        Write write{Write::Operation::kCreate, prepared, Object()};
        co_await target.admission->validate(std::move(write));
      }
      if (limited) {
        charge.emplace(
            co_await limits_->charge(target.resource, target.ns, prepared, Object(), dry_run));
      }
    } catch (...) {
      refused = std::current_exception();
    }
    if (refused) {
      if (allocates(target)) co_await services_->release(std::move(taken));
      std::rethrow_exception(refused);
    }
    std::optional<StatusError> failure;
    bool exists = false;
    bool unknown = false;
    try {
      if (!dry_run) {
        const Object created = co_await resource.objects().create(target.key(), stored);
        if (charge) charge->keep();
        co_return resource.from_storage(created);
      }
    } catch (const StorageError& e) {
      failure = as_status(e, target, "create");
      exists = e.code() == StorageError::Code::kKeyExists;
      unknown = storage::may_be_written(e);
    } catch (const StatusError& e) {
      failure = e;
      unknown = storage::may_be_written(e);
    }
    // A catch block cannot contain co_await.
    if (unknown) {
      std::string uid(prepared.uid());
      const std::optional<Object> found = co_await look_again(target, std::move(uid));
      // The claims stay, and the destructor of the charge causes a recount.
      if (!found) throw StatusError(*failure);
      if (*found) {
        if (charge) charge->keep();
        co_return resource.from_storage(*found);
      }
    }
    if (allocates(target)) co_await services_->release(std::move(taken));
    if (charge) co_await limits_->refund(std::move(*charge));
    if (failure && !exists) throw StatusError(*failure);
    const Object present = co_await resource.storage->get(target.key());
    if (dry_run && !present) co_return prepared;
    if (generated && attempt < kWriteAttempts) continue;
    api::Status status =
        StatusError::already_exists(resource.type.group, resource.type.plural, target.name)
            .status();
    // Also applies if the client has set both name and generateName.
    if (!object["metadata"]["generateName"].as_string().empty()) {
      status.message += ", the server was not able to generate a unique name for the object";
      status.retry_after_seconds = 1;
    }
    if (present && is_deleting(present))
      status.message = "object is being deleted: " + status.message;
    throw StatusError(std::move(status));
  }
}

Awaitable<std::optional<Object>> Store::look_again(Target target, std::string uid) const {
  try {
    Object present = co_await target.resource->objects().get(target.key());
    if (present.uid() != uid) present = Object();
    co_return present;
  } catch (const Error& e) {
    log::debug("cannot find out whether {} {} was written: {}", target.resource->type.kind,
               target.key(), e.what());
  }
  co_return std::nullopt;
}

bool Store::is_limited(const Target& target) const {
  return limits_ != nullptr && target.resource->type.namespaced && !target.ns.empty();
}

Awaitable<Object> Store::complete_pod(Target target, Object pod, bool is_new) const {
  if (is_limited(target)) {
    std::string ns = target.ns;
    pod = co_await limits_->complete_pod(std::move(ns), std::move(pod));
  }
  if (is_new && service_accounts_ != nullptr) {
    ServedResourcePtr accounts = service_accounts_;
    std::string ns = target.ns;
    pod = co_await admit_service_account(std::move(accounts), std::move(ns), std::move(pod));
  }
  if (priority_classes_ == nullptr) co_return pod;
  ServedResourcePtr classes = priority_classes_;
  co_return co_await admit_priority(std::move(classes), std::move(pod));
}

Awaitable<Object> Store::admit_new(Target target, Object object) const {
  const Object before = owned(target, object, Object());
  Write write{Write::Operation::kCreate, before, Object()};
  Admission::Normalize normalize = [target](const Object& changed) {
    return decoded(target, changed, true);
  };
  // A webhook may change the priority class, or add a container.
  if (stores_pods(*target.resource))
    write.again = [this, target](Object pod) { return complete_pod(target, std::move(pod), true); };
  Object after = co_await target.admission->mutate(std::move(write), std::move(normalize));
  co_return after.same(before) ? object : after;
}

bool Store::allocates(const Target& target) const {
  return services_ != nullptr && target.resource->type.plural == "services" &&
         target.resource->type.group.empty();
}

}  // namespace lookout::apiserver::resources
