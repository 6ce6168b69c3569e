#include "apiserver/endpoints/discovery_protobuf.h"

#include "apiserver/protobuf_message.h"
#include "lookout/api/protobuf.h"

namespace lookout::apiserver::endpoints {
namespace {

/// metav1.ListMeta without values. Go's encoder writes the empty texts.
ProtobufMessage empty_list_metadata() {
  ProtobufMessage out;
  for (const unsigned field : {1U, 2U, 3U}) out.bytes(field, "");
  return out;
}

/// metav1.ObjectMeta with a name only. Go's encoder also writes the other texts, the generation and
/// the creation time.
ProtobufMessage encoded_metadata(const json::Value& group) {
  const json::Value* metadata = json::find(group, "metadata");
  ProtobufMessage out;
  out.bytes(1, metadata == nullptr ? std::string_view() : json::text(*metadata, "name"));
  for (const unsigned field : {2U, 3U, 4U, 5U, 6U}) out.bytes(field, "");
  out.number(7, 0);
  out.bytes(8, "");
  return out;
}

ProtobufMessage encoded_kind(const json::Value& object) {
  ProtobufMessage out;
  if (const json::Value* kind = json::find(object, "responseKind")) {
    out.text(1, *kind, "group");
    out.text(2, *kind, "version");
    out.text(3, *kind, "kind");
  }
  return out;
}

ProtobufMessage encoded_subresource(const json::Value& value) {
  ProtobufMessage out;
  out.text(1, value, "subresource");
  out.message(2, encoded_kind(value));
  out.texts(4, value, "verbs");
  return out;
}

ProtobufMessage encoded_resource(const json::Value& value) {
  ProtobufMessage out;
  out.text(1, value, "resource");
  out.message(2, encoded_kind(value));
  out.text(3, value, "scope");
  out.text(4, value, "singularResource");
  out.texts(5, value, "verbs");
  out.texts(6, value, "shortNames");
  out.texts(7, value, "categories");
  json::for_each(value, "subresources",
                 [&](const json::Value& one) { out.message(8, encoded_subresource(one)); });
  return out;
}

ProtobufMessage encoded_version(const json::Value& value) {
  ProtobufMessage out;
  out.text(1, value, "version");
  json::for_each(value, "resources",
                 [&](const json::Value& one) { out.message(2, encoded_resource(one)); });
  out.text(3, value, "freshness");
  return out;
}

ProtobufMessage encoded_group(const json::Value& value) {
  ProtobufMessage out;
  out.message(1, encoded_metadata(value));
  json::for_each(value, "versions",
                 [&](const json::Value& one) { out.message(2, encoded_version(one)); });
  return out;
}

}  // namespace

std::string encode_group_discovery(const json::Value& list) {
  ProtobufMessage groups;
  groups.message(1, empty_list_metadata());
  json::for_each(list, "items",
                 [&](const json::Value& one) { groups.message(2, encoded_group(one)); });
  ProtobufMessage type;
  type.text(1, list, "apiVersion");
  type.text(2, list, "kind");
  // runtime.Unknown: the type, the object, and the empty contentEncoding and contentType.
  ProtobufMessage envelope;
  envelope.message(1, type);
  envelope.message(2, groups);
  envelope.bytes(3, "");
  envelope.bytes(4, "");
  return std::string(api::kProtobufMagic) + envelope.data();
}

}  // namespace lookout::apiserver::endpoints
