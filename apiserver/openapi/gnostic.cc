#include "apiserver/openapi/gnostic.h"

#include <string_view>
#include <utility>

#include "apiserver/protobuf_message.h"

namespace lookout::apiserver::openapi {
namespace {

using json::Value;
using Message = ProtobufMessage;

/// A pair of a name and a value.
Message named(std::string_view name, const Message& value) {
  Message out;
  out.bytes(1, name);
  out.message(2, value);
  return out;
}

Message any(const Value& value) {
  Message out;
  out.bytes(2, json::to_json(value));
  return out;
}

void extensions(const Value& object, unsigned field, Message& out) {
  for (const auto& member : object.GetObject()) {
    const std::string_view name = json::text_of(member.name);
    if (name.starts_with("x-")) out.message(field, named(name, any(member.value)));
  }
}

/// Calls `visit` with the name and value of each member of an object in an object.
template <class Visit>
void for_each_member(const Value& object, std::string_view name, Visit visit) {
  const Value* inner = json::find(object, name);
  if (inner == nullptr || !inner->IsObject()) return;
  for (const auto& member : inner->GetObject()) visit(json::text_of(member.name), member.value);
}

Message schema(const Value& value) {
  Message out;
  out.text(1, value, "$ref");
  out.text(2, value, "format");
  out.text(4, value, "description");
  out.texts(19, value, "required");
  if (const Value* values = json::find(value, "enum"); values != nullptr && values->IsArray()) {
    for (const Value& one : values->GetArray()) out.message(20, any(one));
  }
  if (const Value* values = json::find(value, "additionalProperties")) {
    Message item;
    if (values->IsBool()) {
      item.boolean(2, values->GetBool());
    } else {
      item.message(1, schema(*values));
    }
    out.message(21, item);
  }
  if (const Value* type = json::find(value, "type"); type != nullptr && type->IsString()) {
    Message item;
    item.bytes(1, json::text_of(*type));
    out.message(22, item);
  }
  if (const Value* items = json::find(value, "items"); items != nullptr && items->IsObject()) {
    Message item;
    item.message(1, schema(*items));
    out.message(23, item);
  }
  Message properties;
  for_each_member(value, "properties", [&](std::string_view name, const Value& property) {
    properties.message(1, named(name, schema(property)));
  });
  if (!properties.data().empty()) out.message(25, properties);
  extensions(value, 31, out);
  return out;
}

Message parameter(const Value& value) {
  Message out;
  const std::string_view in = json::text(value, "in");
  if (in == "body") {
    Message body;
    body.text(1, value, "description");
    body.text(2, value, "name");
    body.text(3, value, "in");
    body.flag(4, value, "required");
    if (const Value* type = json::find(value, "schema")) body.message(5, schema(*type));
    out.message(1, body);
  } else {
    Message simple;
    simple.flag(1, value, "required");
    simple.text(2, value, "in");
    simple.text(3, value, "description");
    simple.text(4, value, "name");
    // Query parameters have one more field than path parameters.
    const bool query = in == "query";
    simple.text(query ? 6 : 5, value, "type");
    simple.flag(query ? 20 : 19, value, "uniqueItems");
    Message choice;
    choice.message(query ? 3 : 4, simple);
    out.message(2, choice);
  }
  Message item;
  item.message(1, out);
  return item;
}

void parameters(const Value& object, unsigned field, Message& out) {
  const Value* list = json::find(object, "parameters");
  if (list == nullptr) return;
  for (const Value& one : list->GetArray()) out.message(field, parameter(one));
}

Message operation(const Value& value) {
  Message out;
  out.texts(1, value, "tags");
  out.text(3, value, "description");
  out.text(5, value, "operationId");
  out.texts(6, value, "produces");
  out.texts(7, value, "consumes");
  parameters(value, 8, out);
  Message responses;
  for_each_member(value, "responses", [&](std::string_view code, const Value& response) {
    Message body;
    body.text(1, response, "description");
    if (const Value* type = json::find(response, "schema")) {
      Message item;
      item.message(1, schema(*type));
      body.message(2, item);
    }
    Message choice;
    choice.message(1, body);
    responses.message(1, named(code, choice));
  });
  out.message(9, responses);
  extensions(value, 13, out);
  return out;
}

Message path(const Value& value) {
  Message out;
  constexpr std::pair<std::string_view, unsigned> kMethods[] = {
      {"get", 2}, {"put", 3}, {"post", 4}, {"delete", 5}, {"patch", 8}};
  for (const auto& [name, field] : kMethods) {
    if (const Value* method = json::find(value, name)) out.message(field, operation(*method));
  }
  parameters(value, 9, out);
  return out;
}

}  // namespace

std::string encode_gnostic(const Value& document) {
  Message out;
  out.text(1, document, "swagger");
  if (const Value* about = json::find(document, "info")) {
    Message info;
    info.text(1, *about, "title");
    info.text(2, *about, "version");
    out.message(2, info);
  }
  Message paths;
  for_each_member(document, "paths", [&](std::string_view name, const Value& value) {
    paths.message(2, named(name, path(value)));
  });
  out.message(8, paths);
  Message definitions;
  for_each_member(document, "definitions", [&](std::string_view name, const Value& value) {
    definitions.message(1, named(name, schema(value)));
  });
  out.message(9, definitions);
  return out.data();
}

}  // namespace lookout::apiserver::openapi
