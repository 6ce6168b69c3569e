#include "lookout/api/detail/object_editor.h"

#include <algorithm>

#include "lookout/api/detail/flat_writer.h"
#include "lookout/api/symbols.h"

namespace lookout::api {
namespace {

void write_changes(detail::FlatWriter& writer, std::initializer_list<MetadataChange> changes) {
  for (const MetadataChange& change : changes) {
    if (std::holds_alternative<std::monostate>(change.value)) continue;
    writer.key(change.field);
    if (const auto* text = std::get_if<std::string_view>(&change.value)) {
      writer.string(*text);
    } else {
      writer.integer(std::get<std::int64_t>(change.value));
    }
  }
}

/// Copies the members of `value`, except those that change.
void write_metadata(detail::FlatWriter& writer, Value value,
                    std::initializer_list<MetadataChange> changes) {
  const auto is_changed = [&](std::string_view name) {
    return std::any_of(changes.begin(), changes.end(),
                       [&](const MetadataChange& change) { return change.field.text() == name; });
  };
  writer.begin_object();
  for (const auto& [name, member] : value.members()) {
    if (is_changed(name)) continue;
    writer.key(name);
    writer.value(member);
  }
  write_changes(writer, changes);
  writer.end_object();
}

void write_type(detail::FlatWriter& writer, std::string_view api_version, std::string_view kind) {
  writer.key(sym::kKind);
  writer.string(kind);
  writer.key(sym::kApiVersion);
  writer.string(api_version);
}

}  // namespace

Object with_metadata(const Object& object, std::initializer_list<MetadataChange> changes) {
  detail::FlatWriter& writer = detail::FlatWriter::of_this_thread();
  const std::string_view metadata = sym::kMetadata.text();
  bool found = false;
  writer.begin_object();
  for (const auto& [name, member] : object.body().members()) {
    writer.key(name);
    if (name == metadata) {
      found = true;
      write_metadata(writer, member, changes);
    } else {
      writer.value(member);
    }
  }
  if (!found) {
    writer.key(sym::kMetadata);
    write_metadata(writer, {}, changes);
  }
  writer.end_object();
  return writer.finish();
}

Object with_type(const Object& object, std::string_view api_version, std::string_view kind) {
  if (object.api_version() == api_version && object.kind() == kind) return object;
  detail::FlatWriter& writer = detail::FlatWriter::of_this_thread();
  writer.begin_object();
  write_type(writer, api_version, kind);
  for (const auto& [name, member] : object.body().members()) {
    if (name == sym::kKind.text() || name == sym::kApiVersion.text()) continue;
    writer.key(name);
    writer.value(member);
  }
  writer.end_object();
  return writer.finish();
}

Object partial_metadata(const Object& object) {
  detail::FlatWriter& writer = detail::FlatWriter::of_this_thread();
  writer.begin_object();
  write_type(writer, "meta.k8s.io/v1", "PartialObjectMetadata");
  if (const Value metadata = object[sym::kMetadata]; metadata.exists()) {
    writer.key(sym::kMetadata);
    writer.value(metadata);
  }
  writer.end_object();
  return writer.finish();
}

}  // namespace lookout::api
