#include "apiserver/resources/object_meta.h"

#include <fmt/format.h>
#include <openssl/rand.h>

#include <algorithm>
#include <array>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "apiserver/resources/field.h"
#include "apiserver/resources/names.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/api/error.h"
#include "lookout/api/time.h"
#include "lookout/base/ascii.h"

namespace lookout::apiserver::resources {
namespace {

constexpr std::size_t kMaxAnnotations = 256u << 10;
/// The maximum length of the client's part of a generated name.
constexpr std::size_t kMaxGeneratedPrefix = 58;

template <std::size_t N>
std::array<unsigned char, N> random_bytes() {
  std::array<unsigned char, N> bytes{};
  if (RAND_bytes(bytes.data(), static_cast<int>(N)) != 1)
    throw Error("the system has no random numbers");
  return bytes;
}

void validate_labels(Value labels, Causes& causes) {
  for (const auto& [key, value] : labels.members()) {
    for (const auto& message : rules::check_qualified_name(key))
      causes.push_back(rules::invalid("metadata.labels", key, message));
    for (const auto& message : rules::check_label_value(value.as_string()))
      causes.push_back(rules::invalid("metadata.labels", value.as_string(), message));
  }
}

void validate_annotations(Value annotations, Causes& causes) {
  std::size_t size = 0;
  for (const auto& [key, value] : annotations.members()) {
    for (const auto& message : rules::check_qualified_name(base::lower_case(key)))
      causes.push_back(rules::invalid("metadata.annotations", key, message));
    size += key.size() + value.as_string().size();
  }
  if (size > kMaxAnnotations)
    causes.push_back(rules::too_long("metadata.annotations", static_cast<int>(kMaxAnnotations)));
}

/// The JSON of an owner with its fields in the order of Kubernetes' type.
std::string owner_in_order(Value owner) {
  std::string out = "{";
  const char* comma = "";
  for (const char* field :
       {"apiVersion", "kind", "name", "uid", "controller", "blockOwnerDeletion"}) {
    if (!owner[field].exists()) continue;
    out += fmt::format("{}\"{}\":{}", std::exchange(comma, ","), field, owner[field].to_json());
  }
  return out + "}";
}

std::string owners_in_order(Value owners) {
  std::string out;
  for (const Value owner : owners.elements())
    out += fmt::format("{}{}", out.empty() ? "[" : ",", owner_in_order(owner));
  return out + "]";
}

void validate_owners(Value owners, Causes& causes) {
  std::string controller;
  for (const Value owner : owners.elements()) {
    for (const std::string_view field : {"apiVersion", "kind", "name", "uid"}) {
      if (owner[field].as_string().empty()) {
        causes.push_back(rules::invalid(
            fmt::format("metadata.ownerReferences.{}", field), "",
            field == "apiVersion" ? "version must not be empty" : "must not be empty"));
      }
    }
    const auto refuse = [&](const std::string& shown, std::string_view why) {
      causes.push_back({"FieldValueInvalid", fmt::format("Invalid value: {}: {}", shown, why),
                        "metadata.ownerReferences"});
    };
    if (owner["apiVersion"].as_string() == "v1" && owner["kind"].as_string() == "Event")
      refuse(owner_in_order(owner), "/v1, Kind=Event is disallowed from being an owner");
    if (!owner["controller"].as_bool()) continue;
    const std::string name =
        fmt::format("{}/{}", owner["kind"].as_string(), owner["name"].as_string());
    if (!controller.empty()) {
      refuse(owners_in_order(owners),
             fmt::format("Only one reference can have Controller set to true. Found \"true\" in "
                         "references for {} and {}",
                         controller, name));
    } else {
      controller = name;
    }
  }
}

void validate_finalizers(Value finalizers, Causes& causes) {
  for (const Value finalizer : finalizers.elements()) {
    const std::string_view name = finalizer.as_string();
    for (const auto& message : rules::check_qualified_name(name))
      causes.push_back(rules::invalid("metadata.finalizers", name, message));
  }
}

}  // namespace

void validate_metadata(const ServedResource& resource, const Object& object, Causes& causes) {
  const Value metadata = object["metadata"];
  const auto check_name = resource.strategy->check_name;
  if (std::string prefix(metadata["generateName"].as_string()); !prefix.empty()) {
    // A character after the trailing dash makes the prefix a valid name for the check.
    if (prefix.size() > 1 && prefix.back() == '-')
      prefix = prefix.substr(0, prefix.size() - 2) + "a";
    for (const auto& message : check_name(prefix)) {
      causes.push_back(
          rules::invalid("metadata.generateName", metadata["generateName"].as_string(), message));
    }
  }
  if (object.name().empty()) {
    causes.push_back(rules::required("metadata.name", "name or generateName is required"));
  } else {
    for (const auto& message : check_name(object.name()))
      causes.push_back(rules::invalid("metadata.name", object.name(), message));
  }
  if (resource.type.namespaced) {
    if (object.ns().empty()) {
      causes.push_back(rules::required("metadata.namespace", ""));
    } else {
      for (const auto& message : rules::check_dns1123_label(object.ns()))
        causes.push_back(rules::invalid("metadata.namespace", object.ns(), message));
    }
  } else if (!object.ns().empty()) {
    causes.push_back(rules::forbidden("metadata.namespace", "not allowed on this type"));
  }
  if (const std::int64_t generation = metadata["generation"].as_int(); generation < 0) {
    causes.push_back(
        rules::invalid("metadata.generation", generation, "must be greater than or equal to 0"));
  }
  validate_metadata_details(object, causes);
}

api::detail::Type metadata_type() {
  static const api::detail::Type kType =
      api::detail::Type::of_kind("", "v1", "Namespace")->field("metadata")->type();
  return kType;
}

bool is_standard_finalizer(std::string_view name) {
  return name == "kubernetes" || name == "orphan" || name == "foregroundDeletion";
}

void validate_finalizer_names(const ServedResource& resource, const Object& object,
                              Causes& causes) {
  if (resource.strategy->takes_any_finalizer) return;
  std::size_t index = 0;
  for (const Value finalizer : object["metadata"]["finalizers"].elements()) {
    const std::string here = fmt::format("metadata.finalizers[{}]", index++);
    const std::string_view name = finalizer.as_string();
    if (name.find('/') != std::string_view::npos || is_standard_finalizer(name)) continue;
    causes.push_back(rules::invalid(
        here, name, "name is neither a standard finalizer name nor is it fully qualified"));
  }
}

void validate_metadata_details(const Object& object, Causes& causes) {
  const Value metadata = object["metadata"];
  validate_labels(object.labels(), causes);
  validate_annotations(object.annotations(), causes);
  validate_owners(metadata["ownerReferences"], causes);
  validate_finalizers(metadata["finalizers"], causes);
}

void validate_metadata_update(const Object& object, const Object& old, Causes& causes) {
  const Value metadata = object["metadata"];
  const Value before = old["metadata"];
  if (before["deletionTimestamp"].exists()) {
    std::vector<std::string> added;
    for (const Value finalizer : metadata["finalizers"].elements()) {
      bool known = false;
      for (const Value present : before["finalizers"].elements()) known |= present == finalizer;
      if (!known) added.push_back(api::detail::quote(finalizer.as_string()));
    }
    std::sort(added.begin(), added.end());
    if (!added.empty()) {
      causes.push_back(rules::forbidden(
          "metadata.finalizers",
          fmt::format("no new finalizers can be added if the object is being deleted, found new "
                      "finalizers []string{{{}}}",
                      fmt::join(added, ", "))));
    }
  }
  const auto stays = [&](std::string_view field, std::string_view now, std::string_view then) {
    if (now != then) causes.push_back(rules::invalid(field, now, kImmutable));
  };
  stays("metadata.name", object.name(), old.name());
  stays("metadata.namespace", object.ns(), old.ns());
  stays("metadata.uid", object.uid(), old.uid());
  stays("metadata.deletionTimestamp", metadata["deletionTimestamp"].as_string(),
        before["deletionTimestamp"].as_string());
}

bool is_deleting(const api::Object& object) {
  return object["metadata"]["deletionTimestamp"].exists();
}

bool equal_but_for(std::initializer_list<std::string_view> names, api::Value a, api::Value b) {
  const api::Members one = a.members();
  const api::Members other = b.members();
  const auto next = [&](auto at, const api::Members& members) {
    while (at != members.end() && std::find(names.begin(), names.end(), (*at).name) != names.end())
      ++at;
    return at;
  };
  // Equal members have the same order.
  auto x = next(one.begin(), one);
  auto y = next(other.begin(), other);
  while (x != one.end() && y != other.end()) {
    const auto [name, value] = *x;
    if (name != (*y).name || value != (*y).value) return false;
    x = next(++x, one);
    y = next(++y, other);
  }
  return x == one.end() && y == other.end();
}

void initialize_metadata(json::Value& metadata, json::Allocator& allocator) {
  for (const char* field : {"deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"})
    json::erase(metadata, field);
  json::set(metadata, "uid", new_uid(), allocator);
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  json::set(metadata, "creationTimestamp", api::format_time(now), allocator);
}

void drop_empty_metadata(json::Value& metadata) {
  for (const char* field : {"labels", "annotations", "finalizers", "ownerReferences"}) {
    const json::Value* value = json::find(metadata, field);
    if (value == nullptr) continue;
    const bool empty =
        (value->IsObject() && value->ObjectEmpty()) || (value->IsArray() && value->Empty());
    if (empty) json::erase(metadata, field);
  }
}

std::string generate_name(std::string_view prefix) {
  constexpr std::string_view kLetters = "bcdfghjklmnpqrstvwxz2456789";
  std::string name(prefix.substr(0, kMaxGeneratedPrefix));
  for (const unsigned char byte : random_bytes<5>()) name += kLetters[byte % kLetters.size()];
  return name;
}

std::string new_uid() {
  auto bytes = random_bytes<16>();
  bytes[6] = static_cast<unsigned char>((bytes[6] & 0x0F) | 0x40);  // version 4
  bytes[8] = static_cast<unsigned char>((bytes[8] & 0x3F) | 0x80);
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string out;
  out.reserve(36);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) out += '-';
    out += kDigits[bytes[i] >> 4];
    out += kDigits[bytes[i] & 0xF];
  }
  return out;
}

void ensure_namespace(json::Value& metadata, std::string_view ns, json::Allocator& allocator) {
  const std::string_view present = json::text(metadata, "namespace");
  if (present == ns) return;
  if (ns.empty()) {
    json::erase(metadata, "namespace");
  } else if (present.empty()) {
    json::set(metadata, "namespace", ns, allocator);
  } else {
    check_same_namespace(present, ns);
  }
}

void check_same_namespace(std::string_view ns, std::string_view requested) {
  if (ns.empty() || ns == requested) return;
  throw api::StatusError::bad_request(
      "the namespace of the provided object does not match the namespace sent on the request");
}

}  // namespace lookout::apiserver::resources
