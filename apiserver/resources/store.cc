#include "apiserver/resources/store.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <utility>

#include "apiserver/fields/field_manager.h"
#include "apiserver/names.h"
#include "apiserver/quota/namespace_limits.h"
#include "apiserver/resources/admission.h"
#include "apiserver/resources/object_meta.h"
#include "apiserver/resources/priority_admission.h"
#include "apiserver/resources/service_allocator.h"
#include "apiserver/resources/structural_schema.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/api/detail/object_editor.h"
#include "lookout/api/detail/type_table.h"
#include "lookout/api/quantity.h"
#include "lookout/api/symbols.h"

namespace lookout::apiserver::resources {
namespace {

using json::Value;
using storage::StorageError;

/// How often another name is tried for an object with a generateName.
constexpr int kNameAttempts = 8;

/// Null members mean what absent ones mean in built-in types.
void strip_nulls(Value& value) {
  if (value.IsArray()) {
    for (Value& element : value.GetArray()) strip_nulls(element);
  } else if (value.IsObject()) {
    auto kept = value.MemberBegin();
    for (auto member = value.MemberBegin(); member != value.MemberEnd(); ++member) {
      if (member->value.IsNull()) continue;
      strip_nulls(member->value);
      if (kept != member) {
        kept->name.Swap(member->name);
        kept->value.Swap(member->value);
      }
      ++kept;
    }
    // (RapidJSON refuses to erase nothing from an empty object.)
    if (kept != value.MemberEnd()) value.EraseMember(kept, value.MemberEnd());
  }
}

bool is_empty_map(const Value& value, api::detail::Type type) {
  return type.shape() == api::detail::Shape::kMap && value.IsObject() && value.ObjectEmpty();
}

/// Amounts in the one form that Kubernetes writes them in: "0.5" is "500m", and 1 is "1". Maps
/// without a member are not written at all.
void write_values(Value& value, api::detail::Type type, Allocator& allocator) {
  switch (type.shape()) {
    case api::detail::Shape::kStruct:
      if (!value.IsObject()) return;
      for (auto member = value.MemberBegin(); member != value.MemberEnd();) {
        const auto field = type.field(json::text_of(member->name));
        if (field && is_empty_map(member->value, field->type())) {
          member = value.EraseMember(member);
          continue;
        }
        if (field) write_values(member->value, field->type(), allocator);
        ++member;
      }
      return;
    case api::detail::Shape::kList:
      if (!value.IsArray()) return;
      for (Value& element : value.GetArray()) write_values(element, type.element(), allocator);
      return;
    case api::detail::Shape::kMap:
      if (!value.IsObject()) return;
      for (auto& member : value.GetObject()) write_values(member.value, type.element(), allocator);
      return;
    case api::detail::Shape::kScalar:
      break;
  }
  if (type.short_name() != "Quantity") return;
  std::string text;
  if (value.IsString()) {
    text = json::text_of(value);
  } else if (value.IsInt64()) {
    text = std::to_string(value.GetInt64());
  } else if (value.IsDouble()) {
    text = fmt::format("{}", value.GetDouble());
  } else {
    return;
  }
  if (const auto quantity = api::Quantity::parse(text)) {
    const std::string canonical = quantity->to_string();
    if (!value.IsString() || canonical != text) value = json::copy_text(canonical, allocator);
  }
}

/// Decodes an object of a built-in kind into Go's types and encodes it again.
void write_as_typed(const ServedResource& resource, Document& document, Allocator& allocator) {
  const api::Resource& type = resource.type;
  if (const auto known = api::detail::Type::of_kind(type.group, type.version, type.kind))
    write_values(document, *known, allocator);
}

void set_type(Value& document, const ServedResource& resource, Allocator& allocator) {
  json::set(document, "kind", resource.type.kind, allocator);
  json::set(document, "apiVersion", resource.type.api_version(), allocator);
}

/// Built-in kinds that have a spec and a status always show them, be they empty: in Go they are no
/// pointers.
void add_parts(const ServedResource& resource, Document& document, Allocator& allocator) {
  const api::Resource& type = resource.type;
  const auto known = api::detail::Type::of_kind(type.group, type.version, type.kind);
  if (!known || known->shape() != api::detail::Shape::kStruct) return;
  for (const char* part : {"spec", "status"}) {
    const auto field = known->field(part);
    if (field && field->type().shape() == api::detail::Shape::kStruct)
      json::child(document, part, allocator);
  }
}

/// Custom resources have what their schema says, and nothing else.
void fit_to_schema(const ServedResource& resource, Document& document, Allocator& allocator) {
  if (!resource.schema) return;
  prune(document, resource.schema.body());
  set_schema_defaults(document, resource.schema.body(), allocator);
}

void throw_if_invalid(const ServedResource& resource, std::string_view name, Causes causes) {
  if (causes.empty()) return;
  throw StatusError::invalid(resource.type.group, resource.type.kind, name, std::move(causes));
}

/// The mutable form of an object of this resource, decoded into Go's types.
Document typed_document(const ServedResource& resource, const Object& object) {
  Document document = object.to_document();
  Allocator& allocator = document.GetAllocator();
  if (!resource.custom) {
    strip_nulls(document);
    write_as_typed(resource, document, allocator);
  }
  set_type(document, resource, allocator);
  return document;
}

/// The object after Go's decoder. Removes server-side fields from a new object.
Document decoded_document(const Target& target, const Object& object, bool is_new) {
  const ServedResource& resource = *target.resource;
  Document document = typed_document(resource, object);
  Allocator& allocator = document.GetAllocator();
  Value& metadata = json::child(document, "metadata", allocator);
  if (is_new) {
    for (const char* field : {"uid", "creationTimestamp", "deletionTimestamp",
                              "deletionGracePeriodSeconds", "selfLink"})
      json::erase(metadata, field);
  }
  drop_empty_metadata(metadata);
  ensure_namespace(metadata, resource.type.namespaced ? target.ns : std::string(), allocator);
  if (!resource.custom) add_parts(resource, document, allocator);
  if (resource.strategy->set_defaults != nullptr)
    resource.strategy->set_defaults(document, allocator);
  fit_to_schema(resource, document, allocator);
  return document;
}

Object decoded(const Target& target, const Object& object, bool is_new) {
  return Object::from(decoded_document(target, object, is_new));
}

/// The decoded object, with the client as the owner of what differs from `present`, which is empty
/// for a new object.
Object owned(const Target& target, const Object& object, const Object& present) {
  Document document = decoded_document(target, object, !present);
  if (target.fields != nullptr) {
    const Document before = present ? present.to_document() : Document();
    target.fields->update(document, present ? &before : nullptr, document.GetAllocator());
  }
  return Object::from(document);
}

/// Whether two objects of one resource differ in nothing but the times in managedFields.
bool differ_in_times_only(const Object& object, const Object& present) {
  constexpr std::string_view kMetadata = "metadata";
  constexpr std::string_view kManagedFields = "managedFields";
  if (object[kMetadata][kManagedFields] == present[kMetadata][kManagedFields]) return false;
  const auto equal_but_for = [](api::Value a, api::Value b, std::string_view skipped) {
    const auto members_of = [&](api::Value value) {
      std::vector<api::Members::Member> out;
      for (const auto& member : value.members()) {
        if (member.name != skipped) out.push_back(member);
      }
      return out;
    };
    const auto now = members_of(a);
    const auto then = members_of(b);
    return std::equal(
        now.begin(), now.end(), then.begin(), then.end(),
        [](const auto& x, const auto& y) { return x.name == y.name && x.value == y.value; });
  };
  if (!equal_but_for(object.body(), present.body(), kMetadata) ||
      !equal_but_for(object[kMetadata], present[kMetadata], kManagedFields))
    return false;
  const Document now = object.to_document();
  const Document then = present.to_document();
  return fields::equal_but_for_times(fields::managed_fields_of(now),
                                     fields::managed_fields_of(then));
}

bool asks(const Target& target, Write::Operation operation) {
  return target.admission != nullptr && target.admission->concerns(operation);
}

/// A failure that the API server has no Status of its own for.
StatusError plain_failure(std::int32_t code, std::string message) {
  api::Status status;
  status.code = code;
  status.message = std::move(message);
  return StatusError(std::move(status));
}

/// Thrown out of an update: the last finalizer went from an object that is being deleted.
struct LastFinalizerGone {
  Object object;
};

}  // namespace

std::string Target::key() const {
  if (!resource->type.namespaced) return name;
  if (ns.empty()) return {};
  return ns + "/" + name;
}

void throw_as_status(const StorageError& error, const Target& target, std::string_view operation) {
  const api::Resource& type = target.resource->type;
  switch (error.code()) {
    case StorageError::Code::kKeyNotFound:
      throw StatusError::not_found(type.group, type.plural, target.name);
    case StorageError::Code::kKeyExists:
      if (operation == "create")
        throw StatusError::already_exists(type.group, type.plural, target.name);
      [[fallthrough]];
    case StorageError::Code::kResourceVersionConflicts:
    case StorageError::Code::kInvalidObject:
      throw StatusError::conflict(type.group, type.plural, target.name, error.what());
    case StorageError::Code::kUnreachable:
    case StorageError::Code::kTimeout:
      throw StatusError::server_timeout(type.group, type.plural, operation, 2);
    case StorageError::Code::kCorruptObject:
      break;
  }
  throw StatusError::internal_error(error.what());
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

/// Everything that happens to an object before it is created.
Object Store::prepare_new(const Target& target, const Object& object) const {
  const ServedResource& resource = *target.resource;
  const Strategy& strategy = *resource.strategy;
  Document document = typed_document(resource, object);
  Allocator& allocator = document.GetAllocator();
  Value& metadata = json::child(document, "metadata", allocator);
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
  // (Where nobody counts, it is what the creator says.)
  if (strategy.generation != Generation::kNone && strategy.generation != Generation::kChangesOfSpec)
    json::set(metadata, "generation", Value(1), allocator);
  if (resource.has_status() && !strategy.keeps_status_on_create) json::erase(document, "status");
  if (!resource.custom) add_parts(resource, document, allocator);
  if (strategy.set_defaults != nullptr) strategy.set_defaults(document, allocator);
  fit_to_schema(resource, document, allocator);
  if (target.fields != nullptr) target.fields->update(document, nullptr, allocator);
  if (strategy.prepare_for_create != nullptr) strategy.prepare_for_create(document, allocator);
  return Object::from(document);
}

Awaitable<Object> Store::create(Target target, Object object, bool dry_run) const {
  const ServedResource& resource = *target.resource;
  const bool generated =
      object.name().empty() && !object["metadata"]["generateName"].as_string().empty();
  co_await check_namespace(target, object.name());
  const bool is_pod =
      !resource.custom && resource.type.group.empty() && resource.type.plural == "pods";
  if (is_pod) {
    // Nobody owns what admission sets.
    object = owned(target, object, Object());
    target.fields = nullptr;
    object = co_await complete_pod(target, std::move(object));
  }
  const bool asked = asks(target, Write::Operation::kCreate);
  if (asked) {
    const Object wanted = object;
    object = co_await admit_new(target, wanted);
    // Nobody owns the changes of admission.
    if (!object.same(wanted)) target.fields = nullptr;
    // Admission may have changed the priority class, or added a container.
    if (is_pod) object = co_await complete_pod(target, std::move(object));
  }
  const bool limited = is_limited(target);
  for (int attempt = 1;; ++attempt) {
    Object prepared = prepare_new(target, object);
    target.name = prepared.name();
    Causes causes;
    validate_metadata(resource, prepared, causes);
    Object stored = resource.to_storage(prepared);
    if (resource.strategy->validate != nullptr) resource.strategy->validate(stored, causes);
    if (resource.schema) validate_schema(prepared, resource.schema.body(), causes);
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
    std::optional<StorageError> failure;
    try {
      if (!dry_run) {
        const Object created = co_await resource.objects().create(target.key(), stored);
        if (charge) charge->keep();
        co_return resource.from_storage(created);
      }
    } catch (const StorageError& e) {
      failure = e;
    }
    if (allocates(target)) co_await services_->release(std::move(taken));
    if (charge) co_await limits_->refund(std::move(*charge));
    // Nothing may be awaited in a handler of exceptions.
    const Object present = co_await resource.storage->get(target.key());
    if (dry_run && !present) co_return prepared;
    if (dry_run) failure.emplace(StorageError::Code::kKeyExists, target.key());
    if (failure->code() != StorageError::Code::kKeyExists)
      throw_as_status(*failure, target, "create");
    if (generated && attempt < kNameAttempts) continue;
    api::Status status =
        StatusError::already_exists(resource.type.group, resource.type.plural, target.name)
            .status();
    if (present && is_deleting(present))
      status.message = "object is being deleted: " + status.message;
    throw StatusError(std::move(status));
  }
}

bool Store::is_limited(const Target& target) const {
  return limits_ != nullptr && target.resource->type.namespaced && !target.ns.empty();
}

Awaitable<Object> Store::complete_pod(Target target, Object pod) const {
  if (is_limited(target)) {
    std::string ns = target.ns;
    pod = co_await limits_->complete_pod(std::move(ns), std::move(pod));
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
  Object after = co_await target.admission->mutate(std::move(write), std::move(normalize));
  co_return after.same(before) ? object : after;
}

/// The steps of a change between the request and the storage.
class Store::ChangeOfObject {
 public:
  ChangeOfObject(const Target& target, const Change& change, Part part)
      : target_(target), resource_(*target.resource), change_(change), part_(part) {}

  /// The client's wish, if it is one about this object in this version.
  Object wish(const Object& present) const {
    Object wanted = change_(present);
    check_identity(wanted);
    check_version(wanted, present);
    return wanted;
  }

  /// From stored object to stored object.
  Object operator()(const Object& present_stored) const {
    const Object present = resource_.from_storage(present_stored);
    const Object wanted = wish(present);
    Document document = wanted.to_document();
    Allocator& allocator = document.GetAllocator();
    const Document before = present.to_document();
    if (!resource_.custom) {
      strip_nulls(document);
      write_as_typed(resource_, document, allocator);
    }
    prepare(document, before, allocator);
    Object object = Object::from(document);
    Object stored = resource_.to_storage(object);
    // Compared as it is kept: what a client leaves out is the same as what it says to be empty.
    if (!resource_.custom) object = resource_.from_storage(stored);
    const Strategy& strategy = *resource_.strategy;
    if (strategy.finish_update != nullptr && part_ == Part::kMain) {
      object = strategy.finish_update(object, present);
      stored = resource_.to_storage(object);
    }
    if (part_ != Part::kStatus && is_new_generation(strategy.generation, object, present)) {
      object = api::with_metadata(
          object, {{api::sym::kGeneration, present["metadata"]["generation"].as_int() + 1}});
      stored = resource_.to_storage(object);
    }
    validate(object, stored, present, present_stored);
    if (is_deleting(present) && object["metadata"]["finalizers"].empty() &&
        present["metadata"]["deletionGracePeriodSeconds"].as_int() == 0 && may_go(object))
      throw LastFinalizerGone{object};
    return differ_in_times_only(object, present) ? present_stored : stored;
  }

 private:
  void check_identity(const Object& wanted) const {
    if (wanted.name().empty()) {
      throw StatusError::bad_request(
          fmt::format("the name of the object ({} based on URL) was undeterminable: name must be "
                      "provided",
                      target_.name));
    }
    if (wanted.name() != target_.name) {
      throw StatusError::bad_request(
          fmt::format("the name of the object ({}) does not match the name on the URL ({})",
                      wanted.name(), target_.name));
    }
    if (resource_.type.namespaced && !wanted.ns().empty() && wanted.ns() != target_.ns) {
      throw StatusError::bad_request(
          "the namespace of the provided object does not match the namespace sent on the request");
    }
  }

  void check_version(const Object& wanted, const Object& present) const {
    const std::string_view version = wanted.resource_version();
    if (version.empty() || version == "0") {
      if (resource_.strategy->unconditional_update) return;
      throw StatusError::invalid(
          resource_.type.group, resource_.type.plural, target_.name,
          {{"FieldValueInvalid", "Invalid value: 0x0: must be specified for an update",
            "metadata.resourceVersion"}});
    }
    if (version == present.resource_version()) return;
    if (!api::detail::parse_int(version)) {
      throw plain_failure(500, fmt::format("strconv.ParseUint: parsing {}: invalid syntax",
                                           api::detail::quote(version)));
    }
    throw StatusError::conflict(resource_.type.group, resource_.type.plural, target_.name,
                                "the object has been modified; please apply your changes to the "
                                "latest version and try again");
  }

  void prepare(Document& document, const Document& before, Allocator& allocator) const {
    const Strategy& strategy = *resource_.strategy;
    set_type(document, resource_, allocator);
    if (part_ == Part::kStatus) {
      // The status of the new object, and everything else of the old one.
      Value status;
      if (Value* wanted = json::find(document, "status")) status = std::move(*wanted);
      Value metadata;
      if (Value* wanted = json::find(document, "metadata")) metadata = std::move(*wanted);
      static_cast<Value&>(document) = json::deep_copy(before, allocator);
      if (status.IsNull()) {
        json::erase(document, "status");
        if (!resource_.custom) add_parts(resource_, document, allocator);
      } else {
        json::set(document, "status", std::move(status), allocator);
      }
      if (strategy.status_update_keeps_metadata) {
        json::take(json::child(document, "metadata", allocator), metadata, "managedFields",
                   allocator);
      } else {
        json::set(document, "metadata", std::move(metadata), allocator);
      }
    } else if (part_ == Part::kMain && resource_.has_status()) {
      json::take(document, before, "status", allocator);
    }
    keep_metadata(document, before, allocator);
    fit_to_schema(resource_, document, allocator);
    if (part_ != Part::kStatus && strategy.set_defaults != nullptr)
      strategy.set_defaults(document, allocator);
    if (target_.fields != nullptr) target_.fields->update(document, &before, allocator);
    if (part_ == Part::kMain && strategy.prepare_for_update != nullptr)
      strategy.prepare_for_update(document, before, allocator);
  }

  /// Keeps metadata that an update cannot change.
  void keep_metadata(Document& document, const Document& before, Allocator& allocator) const {
    Value& metadata = json::child(document, "metadata", allocator);
    const Value& old = *json::find(before, "metadata");
    ensure_namespace(metadata, resource_.type.namespaced ? target_.ns : std::string(), allocator);
    for (const char* field : {"resourceVersion", "generation", "creationTimestamp", "selfLink"})
      json::take(metadata, old, field, allocator);
    // Once there, these stay. That they come by a change is refused later.
    for (const char* field : {"deletionTimestamp", "deletionGracePeriodSeconds"}) {
      if (part_ == Part::kStatus || json::find(old, field) != nullptr)
        json::take(metadata, old, field, allocator);
    }
    if (json::text(metadata, "uid").empty()) json::take(metadata, old, "uid", allocator);
    if (part_ == Part::kStatus) json::take(metadata, old, "ownerReferences", allocator);
    drop_empty_metadata(metadata);
  }

  void validate(const Object& object, const Object& stored, const Object& present,
                const Object& present_stored) const {
    const Strategy& strategy = *resource_.strategy;
    Causes causes;
    // The API server looks at metadata for all kinds, and most kinds do it once more. It says
    // everything as often in the details (and once in the message).
    Causes details;
    validate_metadata_details(object, details);
    const auto append = [&](const Causes& more) {
      causes.insert(causes.end(), more.begin(), more.end());
    };
    validate_metadata(resource_, object, causes);
    validate_metadata_update(object, present, causes);
    append(details);
    if (part_ != Part::kStatus || !resource_.custom) {
      validate_metadata_update(object, present, causes);
      append(details);
    }
    if (resource_.schema) validate_schema(object, resource_.schema.body(), causes);
    if (part_ == Part::kMain) {
      if (strategy.validate_update != nullptr)
        strategy.validate_update(stored, present_stored, causes);
      if (strategy.validates_metadata_again) append(details);
      if (strategy.validate != nullptr) strategy.validate(stored, causes);
    } else if (part_ == Part::kStatus && strategy.validate_status != nullptr) {
      strategy.validate_status(stored, causes);
    }
    throw_if_invalid(resource_, target_.name, std::move(causes));
  }

  /// A namespace has finalizers of its own.
  bool may_go(const Object& object) const {
    return resource_.type.plural != "namespaces" || !resource_.type.group.empty() ||
           object["spec"]["finalizers"].empty();
  }

  const Target& target_;
  const ServedResource& resource_;
  const Change& change_;
  const Part part_;
};

bool Store::allocates(const Target& target) const {
  return services_ != nullptr && target.resource->type.plural == "services" &&
         target.resource->type.group.empty();
}

Awaitable<Store::Updated> Store::update(Target target, Change change, Part part,
                                        storage::Preconditions preconditions, bool dry_run) const {
  if (asks(target, Write::Operation::kUpdate)) {
    return update_admitted(std::move(target), std::move(change), part, std::move(preconditions),
                           dry_run);
  }
  return update_unasked(std::move(target), std::move(change), part, std::move(preconditions),
                        dry_run);
}

Awaitable<bool> Store::has_moved(Target target, Object present) const {
  const Object now = co_await target.resource->storage->get(target.key());
  co_return !now || now.resource_version() != present.resource_version();
}

/// Admission takes its time, so the object is looked at first and written afterwards, provided that
/// it is still the same. If it is not, everybody is asked again, as in kube-apiserver.
Awaitable<Store::Updated> Store::update_admitted(Target target, Change change, Part part,
                                                 storage::Preconditions preconditions,
                                                 bool dry_run) const {
  const ServedResource& resource = *target.resource;
  const std::string key = target.key();
  Admission& admission = *target.admission;
  for (;;) {
    const Object stored = co_await resource.objects().get(key);
    if (!stored) co_return co_await update_unasked(target, change, part, preconditions, dry_run);
    try {
      preconditions.check(key, stored);
    } catch (const StorageError& e) {
      throw_as_status(e, target, "update");
    }
    const Object present = resource.from_storage(stored);
    const ChangeOfObject change_of_object(target, change, part);
    const Object wanted = change_of_object.wish(present);
    const Object before = owned(target, wanted, present);
    Write first{Write::Operation::kUpdate, before, present};
    Admission::Normalize normalize = [target](const Object& changed) {
      return decoded(target, changed, false);
    };
    Object after = co_await admission.mutate(std::move(first), std::move(normalize));
    Target rest = target;
    if (after.same(before)) {
      after = wanted;
    } else {
      // Nobody owns the changes of admission.
      rest.fields = nullptr;
    }
    Change settled = [after](const Object& /*present*/) { return after; };
    const ChangeOfObject outcome(rest, settled, part);
    Object kept;
    try {
      kept = resource.from_storage(outcome(stored));
    } catch (const LastFinalizerGone& e) {
      kept = e.object;
    }
    Write second{Write::Operation::kUpdate, kept, present};
    co_await admission.validate(std::move(second));
    storage::Preconditions same = preconditions;
    same.resource_version = std::string(present.resource_version());
    std::exception_ptr conflict;
    try {
      co_return co_await update_unasked(rest, std::move(settled), part, std::move(same), dry_run);
    } catch (const StatusError& e) {
      if (!api::is_conflict(e) && !api::is_not_found(e)) throw;
      conflict = std::current_exception();
    }
    const bool moved = co_await has_moved(target, present);
    if (!moved) std::rethrow_exception(conflict);
  }
}

Awaitable<Store::Updated> Store::update_unasked(Target target, Change change, Part part,
                                                storage::Preconditions preconditions,
                                                bool dry_run) const {
  if (allocates(target) && part == Part::kMain) {
    return update_service(std::move(target), std::move(change), std::move(preconditions), dry_run);
  }
  return update_object(std::move(target), std::move(change), part, std::move(preconditions),
                       dry_run);
}

/// Allocates the new addresses and ports of a service before the change, and releases unused ones
/// afterwards.
Awaitable<Store::Updated> Store::update_service(Target target, Change change,
                                                storage::Preconditions preconditions,
                                                bool dry_run) const {
  for (int attempt = 1;; ++attempt) {
    const Object present = co_await target.resource->objects().get(target.key());
    if (!present) {
      co_return co_await update_object(target, change, Part::kMain, preconditions, dry_run);
    }
    std::optional<StatusError> failure;
    ServiceClaims taken;
    const ServiceClaims had = claims_of(present);
    Updated updated;
    try {
      preconditions.check(target.key(), present);
      const ChangeOfObject change_of_object(target, change, Part::kMain);
      Object wanted;
      try {
        wanted = change_of_object(present);
      } catch (const LastFinalizerGone& e) {
        wanted = e.object;
      }
      ServiceClaims before = had;
      wanted = co_await services_->complete(std::move(wanted), std::move(before), dry_run, taken);
      Change filled = [wanted](const Object&) { return wanted; };
      storage::Preconditions same = preconditions;
      same.resource_version = std::string(present.resource_version());
      // Nobody owns addresses and ports that are allocated.
      Target rest = target;
      rest.fields = nullptr;
      updated =
          co_await update_object(rest, std::move(filled), Part::kMain, std::move(same), dry_run);
    } catch (const StatusError& e) {
      failure = e;
    } catch (const StorageError& e) {
      failure = StatusError::conflict("", "services", target.name, e.what());
    }
    if (!failure) {
      if (dry_run) co_return updated;
      const ServiceClaims has = claims_of(updated.object);
      ServiceClaims done;
      std::set_difference(had.addresses.begin(), had.addresses.end(), has.addresses.begin(),
                          has.addresses.end(), std::inserter(done.addresses, done.addresses.end()));
      std::set_difference(had.ports.begin(), had.ports.end(), has.ports.begin(), has.ports.end(),
                          std::inserter(done.ports, done.ports.end()));
      co_await services_->release(std::move(done));
      co_return updated;
    }
    co_await services_->release(std::move(taken));
    // Somebody else may have changed it meanwhile.
    const Object now = co_await target.resource->storage->get(target.key());
    const bool moved = !now || now.resource_version() != present.resource_version();
    if (!api::is_conflict(*failure) || !moved || attempt == kNameAttempts)
      throw StatusError(*failure);
  }
}

Awaitable<Store::Updated> Store::update_object(Target target, Change change, Part part,
                                               storage::Preconditions preconditions,
                                               bool dry_run) const {
  if (part == Part::kMain && is_limited(target) &&
      quota::NamespaceLimits::concerns_updates(target.resource->type)) {
    return update_limited(std::move(target), std::move(change), std::move(preconditions), dry_run);
  }
  return write_change(std::move(target), std::move(change), part, std::move(preconditions),
                      dry_run);
}

/// As with admission, the object is looked at first and written afterwards, provided that it is
/// still the same.
Awaitable<Store::Updated> Store::update_limited(Target target, Change change,
                                                storage::Preconditions preconditions,
                                                bool dry_run) const {
  const ServedResource& resource = *target.resource;
  for (;;) {
    const Object stored = co_await resource.objects().get(target.key());
    if (!stored) {
      co_return co_await write_change(target, change, Part::kMain, preconditions, dry_run);
    }
    const Object present = resource.from_storage(stored);
    const ChangeOfObject change_of_object(target, change, Part::kMain);
    bool goes = false;
    Object wanted;
    try {
      preconditions.check(target.key(), stored);
      wanted = resource.from_storage(change_of_object(stored));
    } catch (const LastFinalizerGone&) {
      goes = true;
    } catch (const StorageError& e) {
      throw_as_status(e, target, "update");
    }
    storage::Preconditions same = preconditions;
    same.resource_version = std::string(present.resource_version());
    std::optional<quota::NamespaceLimits::Charge> charge;
    if (!goes) {
      co_await limits_->check(target.resource, target.ns, wanted, present);
      charge.emplace(
          co_await limits_->charge(target.resource, target.ns, wanted, present, dry_run));
    }
    std::exception_ptr failure;
    bool conflict = false;
    try {
      Updated updated =
          co_await write_change(target, change, Part::kMain, std::move(same), dry_run);
      if (charge) charge->keep();
      co_return updated;
    } catch (const StatusError& e) {
      failure = std::current_exception();
      conflict = api::is_conflict(e) || api::is_not_found(e);
    }
    if (charge) co_await limits_->refund(std::move(*charge));
    bool moved = false;
    if (conflict) moved = co_await has_moved(target, present);
    if (!moved) std::rethrow_exception(failure);
  }
}

Awaitable<Store::Updated> Store::write_change(Target target, Change change, Part part,
                                              storage::Preconditions preconditions,
                                              bool dry_run) const {
  const ServedResource& resource = *target.resource;
  const std::string key = target.key();
  const ChangeOfObject change_of_object(target, change, part);
  const bool may_create =
      target.creates || (resource.strategy->create_on_update && part == Part::kMain);
  std::optional<LastFinalizerGone> gone;
  std::optional<StorageError> failure;
  Object result;
  try {
    if (dry_run) {
      const Object present = co_await resource.objects().get(key);
      if (present) {
        preconditions.check(key, present);
        co_return Updated{resource.from_storage(change_of_object(present)), false};
      }
      throw StorageError(StorageError::Code::kKeyNotFound, key);
    }
    storage::Interface::Update wrapped = change_of_object;
    result = co_await resource.objects().guaranteed_update(key, false, preconditions,
                                                           std::move(wrapped));
    co_return Updated{resource.from_storage(result), false};
  } catch (const LastFinalizerGone& e) {
    gone = e;
  } catch (const StorageError& e) {
    failure = e;
  }
  if (gone) {
    if (!dry_run) {
      try {
        storage::Interface::Validate anything;
        co_await resource.objects().remove(key, preconditions, std::move(anything));
      } catch (const StorageError& e) {
        // Others may have been faster.
        if (e.code() != StorageError::Code::kKeyNotFound) throw_as_status(e, target, "delete");
      }
      if (allocates(target)) co_await services_->release(claims_of(gone->object));
    }
    co_return Updated{gone->object, false};
  }
  if (failure->code() != StorageError::Code::kKeyNotFound || !may_create)
    throw_as_status(*failure, target, "update");
  // PUT creates some kinds of objects, which then have no business with an older version.
  Object fresh = change({});
  if (fresh.name().empty()) {
    throw StatusError::bad_request(fmt::format(
        "the name of the object ({} based on URL) was undeterminable: name must be provided",
        target.name));
  }
  if (!fresh.uid().empty() || preconditions.uid) {
    throw StatusError::conflict(
        resource.type.group, resource.type.plural, target.name,
        fmt::format("Precondition failed: UID in precondition: {}, UID in object meta: ",
                    fresh.uid()));
  }
  fresh = api::with_metadata(fresh, {{api::sym::kResourceVersion, std::monostate()}});
  Object created = co_await create(target, fresh, dry_run);
  co_return Updated{std::move(created), true};
}

}  // namespace lookout::apiserver::resources
