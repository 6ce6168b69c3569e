#include "lookout/controller/owner_references.h"

#include <fmt/format.h>

#include <string>
#include <string_view>

#include "lookout/k8s/meta/v1_draft.h"

namespace lookout::controller {
namespace {

std::string_view group_of(std::string_view api_version) {
  const auto slash = api_version.find('/');
  return slash == std::string_view::npos ? std::string_view() : api_version.substr(0, slash);
}

/// For views and drafts.
template <class Reference>
bool refers_to(const Reference& reference, const api::Object& owner) {
  return group_of(reference.api_version()) == group_of(owner.api_version()) &&
         reference.kind() == owner.kind() && reference.name() == owner.name();
}

std::string described(const api::Object& object) {
  return fmt::format("{} {}", object.kind(), object.key());
}

void check(const api::Object& owner, const api::ObjectDraft& owned) {
  if (owner.api_version().empty() || owner.kind().empty() || owner.name().empty() ||
      owner.uid().empty()) {
    throw InvalidArgument(
        fmt::format("owner {}: it needs an apiVersion, a kind, a name and a uid, which the server "
                    "gives it when it is created",
                    described(owner)));
  }
  if (owner.kind() == "PartialObjectMetadata" && group_of(owner.api_version()) == "meta.k8s.io") {
    throw InvalidArgument(
        fmt::format("owner {}: its metadata has no type, which an owner reference needs: set the "
                    "apiVersion and kind of the object",
                    described(owner)));
  }
  if (owner.ns().empty()) return;
  const k8s::meta::v1::ObjectMetaDraft metadata(owned["metadata"]);
  if (metadata.namespace_().empty()) {
    throw InvalidArgument(fmt::format(
        "owner {}: a cluster-scoped object cannot have a namespaced owner", described(owner)));
  }
  if (metadata.namespace_() != owner.ns()) {
    throw InvalidArgument(
        fmt::format("owner {}: it cannot own {} in the namespace \"{}\": owner references cannot "
                    "cross namespaces",
                    described(owner), metadata.name(), metadata.namespace_()));
  }
}

k8s::meta::v1::OwnerReferenceDraft reference_to(const api::Object& owner,
                                                const api::ObjectDraft& owned) {
  const auto references = k8s::meta::v1::ObjectMetaDraft(owned["metadata"]).owner_references();
  for (const auto& reference : references) {
    if (refers_to(reference, owner)) return reference;
  }
  return references.ListDraft::append();
}

k8s::meta::v1::OwnerReferenceDraft write_reference(const api::Object& owner,
                                                   const api::ObjectDraft& owned) {
  return reference_to(owner, owned)
      .set_api_version(owner.api_version())
      .set_kind(owner.kind())
      .set_name(owner.name())
      .set_uid(owner.uid());
}

}  // namespace

void set_controller_reference(const api::Object& owner, const api::ObjectDraft& owned) {
  check(owner, owned);
  const k8s::meta::v1::ObjectMetaDraft metadata(owned["metadata"]);
  for (const auto& reference : metadata.owner_references()) {
    if (reference.controller() != true || refers_to(reference, owner)) continue;
    throw AlreadyOwnedError(fmt::format("{}: {} is its controller already", metadata.name(),
                                        fmt::format("{} {}", reference.kind(), reference.name())));
  }
  write_reference(owner, owned).set_controller(true).set_block_owner_deletion(true);
}

void set_owner_reference(const api::Object& owner, const api::ObjectDraft& owned) {
  check(owner, owned);
  write_reference(owner, owned);
}

bool remove_owner_reference(const api::Object& owner, const api::ObjectDraft& owned) {
  const auto references = k8s::meta::v1::ObjectMetaDraft(owned["metadata"]).owner_references();
  bool removed = false;
  for (std::size_t i = references.size(); i-- > 0;) {
    if (!refers_to(references[i], owner)) continue;
    references.erase(i);
    removed = true;
  }
  return removed;
}

bool has_owner_reference(const api::Object& owner, const api::Object& owned) {
  for (const auto& reference : owned.metadata().owner_references()) {
    if (refers_to(reference, owner)) return true;
  }
  return false;
}

void require_ownership(const api::Object& object, const Ownership& ownership) {
  if (!object || !ownership.owner) return;
  const auto controller = controller_of(object);
  if (!controller) {
    if (ownership.orphans == Orphans::kAdopt) return;
    throw NotOwnedError(
        fmt::format("{} already exists, and no controller owns it", described(object)));
  }
  const api::Object& owner = ownership.owner;
  if (controller->uid() == owner.uid()) return;
  throw AlreadyOwnedError(
      fmt::format("{} is owned by another controller: by {} {} (uid {}), not by {} {} (uid {})",
                  described(object), controller->kind(), controller->name(), controller->uid(),
                  owner.kind(), owner.name(), owner.uid()));
}

bool is_controlled_by(const api::Object& owned, const api::Object& owner) {
  const auto controller = controller_of(owned);
  return controller && controller->uid() == owner.uid();
}

std::optional<k8s::meta::v1::OwnerReference> controller_of(const api::Object& object) {
  for (const auto& reference : object.metadata().owner_references()) {
    if (reference.controller() == true) return reference;
  }
  return std::nullopt;
}

}  // namespace lookout::controller
