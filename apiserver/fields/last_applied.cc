#include "apiserver/fields/last_applied.h"

#include <algorithm>
#include <cstddef>

#include "apiserver/fields/typed_value.h"
#include "lookout/api/error.h"
#include "lookout/api/object.h"
#include "lookout/base/ascii.h"

namespace lookout::apiserver::fields {
namespace {

using json::Value;

constexpr std::string_view kAnnotation = "kubectl.kubernetes.io/last-applied-configuration";
/// All annotations of an object together.
constexpr std::size_t kMaxAnnotations = 256 * 1024;

Value* annotations_of(Value& object) {
  Value* metadata = json::find(object, "metadata");
  return metadata == nullptr ? nullptr : json::find(*metadata, "annotations");
}

void sort_members(Value& value) {
  if (value.IsArray()) {
    for (Value& element : value.GetArray()) sort_members(element);
  } else if (value.IsObject()) {
    for (auto& member : value.GetObject()) sort_members(member.value);
    std::sort(value.MemberBegin(), value.MemberEnd(), [](const auto& a, const auto& b) {
      return json::text_of(a.name) < json::text_of(b.name);
    });
  }
}

/// JSON as Go prints it.
std::string go_json(Value& value) {
  sort_members(value);
  // These characters occur only in strings.
  return base::escape(json::to_json(value),
                      {{'<', "\\u003c"}, {'>', "\\u003e"}, {'&', "\\u0026"}}) +
         "\n";
}

}  // namespace

std::optional<FieldSet> client_side_fields(const Value& live, const FieldSchema& schema) {
  const Value* annotations = annotations_of(const_cast<Value&>(live));
  const std::string_view text =
      annotations == nullptr ? std::string_view() : json::text(*annotations, kAnnotation);
  if (text.empty()) return std::nullopt;
  try {
    const json::Document last = api::Object::parse(text).to_document();
    if (json::text(last, "apiVersion") != json::text(live, "apiVersion")) return std::nullopt;
    if (!check(last, schema).empty()) return std::nullopt;
    const Comparison changes = compare(last, live, schema);
    return field_set(last, schema)
        .without(changes.modified)
        .without(changes.added)
        .without(changes.removed);
  } catch (const api::DecodeError&) {
    return std::nullopt;
  }
}

void update_last_applied(Value& object, const Value& config, json::Allocator& allocator) {
  Value* annotations = annotations_of(object);
  if (annotations == nullptr || json::text(*annotations, kAnnotation).empty()) return;
  json::Document applied;
  static_cast<Value&>(applied) = json::deep_copy(config, applied.GetAllocator());
  if (Value* own = annotations_of(applied)) json::erase(*own, kAnnotation);
  const std::string text = go_json(applied);
  std::size_t size = text.size() + kAnnotation.size();
  for (const auto& member : annotations->GetObject()) {
    const std::string_view name = json::text_of(member.name);
    if (name != kAnnotation && member.value.IsString())
      size += name.size() + member.value.GetStringLength();
  }
  if (size <= kMaxAnnotations) {
    json::set(*annotations, kAnnotation, text, allocator);
    return;
  }
  // The annotation must not be outdated.
  json::erase(*annotations, kAnnotation);
  if (annotations->ObjectEmpty()) json::erase(*json::find(object, "metadata"), "annotations");
}

}  // namespace lookout::apiserver::fields
