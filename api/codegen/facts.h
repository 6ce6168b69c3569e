// The generator's model of the schema facts (api/schema/kubernetes-*.json).
#pragma once

#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace lookout::codegen {

/// The type of a field or an element: exactly one of the members is set.
struct TypeRef {
  enum class Kind { kScalar, kRef, kArray, kMap };
  Kind kind = Kind::kScalar;
  std::string name;              // scalar: "string", "integer:int32" ...; ref: the type's full name
  std::vector<TypeRef> element;  // array and map: one entry
};

struct Field {
  std::string name;
  TypeRef type;
  bool required = false;
  std::optional<int> number;  // protobuf field number; none if protobuf inlines another message
  std::string wire;           // the protobuf type; empty without a number
  bool pointer = false;       // a pointer in Go: absent differs from zero
  bool always = false;        // in JSON even if absent or zero
  bool typed = false;         // its objects have apiVersion and kind
  std::string patch_merge_key;
  std::string patch_strategy;  // several are separated by commas
  std::string list_type;       // "atomic", "set", "map", or "" for none
  std::vector<std::string> list_map_keys;
  std::string map_type;  // "atomic", "granular", or "" for none
};

struct GroupVersionKind {
  std::string group;
  std::string version;
  std::string kind;
};

/// A field of a protobuf message without a type description.
struct WireField {
  std::string name;
  int number = 0;
  std::string type;
};

struct Type {
  std::string name;                     // full: io.k8s.api.core.v1.Pod
  std::optional<std::string> alias;     // a scalar under another name (Quantity, Time ...)
  std::optional<GroupVersionKind> gvk;  // set for types that are sent as objects
  std::vector<Field> fields;
  std::vector<WireField> inlined;  // protobuf messages whose fields are this type's own in JSON
};

struct Resource {
  GroupVersionKind gvk;
  std::string plural;
  std::string singular;
  bool namespaced = false;
  std::vector<std::string> verbs;
  std::vector<std::string> short_names;
  std::vector<std::string> subresources;
};

struct Facts {
  std::string kubernetes;  // "1.36"
  std::vector<Resource> resources;
  std::map<std::string, Type> types;
  std::map<std::string, std::vector<WireField>> wire_messages;  // by their protobuf names
};

/// Reads the facts file. Throws std::runtime_error, with the file and the reason.
Facts load_facts(const std::filesystem::path& path);

/// The lists of api/schema/well_known.txt.
struct WellKnown {
  std::vector<std::string> common_fields;
  std::vector<std::string> common_strings;
  std::vector<std::string> field_set_names;
  std::vector<std::string> strings;
  std::vector<std::string> member_orders;  // names in order, separated by spaces
};
WellKnown load_well_known(const std::filesystem::path& path);

}  // namespace lookout::codegen
