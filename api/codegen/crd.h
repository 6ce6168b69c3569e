// CustomResourceDefinitions as the generator sees them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace lookout::codegen {

struct CrdField;

/// The type of a field, of a list's elements or of a map's values.
struct CrdType {
  enum class Kind {
    kScalar,     // `name` as cpp_types.h knows it: "string", "integer:int32", "any" ...
    kQuantity,   // resource.Quantity
    kBuiltin,    // `name`: the full name of a structure of Kubernetes' own
    kList,       // of `element`
    kMap,        // from strings to `element`
    kStructure,  // with `fields`
  };

  static CrdType of(Kind kind, std::string name = {});

  Kind kind = Kind::kScalar;
  std::string name;
  std::vector<CrdType> element;
  std::vector<CrdField> fields;
  /// A structure also keeps fields that it does not list.
  bool preserves_unknown = false;
  /// The values that the schema lists, of strings and integers only.
  std::vector<std::variant<std::string, std::int64_t>> values;
  /// Lists: "atomic", "set", "map", or "" for none; and the fields that are the key of an element.
  std::string list_type;
  std::vector<std::string> list_map_keys;
};

struct CrdField {
  std::string name;
  std::string description;
  /// The default as JSON; empty if there is none.
  std::string default_json;
  CrdType type = {};
  bool required = false;
  bool nullable = false;
};

inline CrdType CrdType::of(Kind kind, std::string name) {
  CrdType out;
  out.kind = kind;
  out.name = std::move(name);
  return out;
}

struct CrdVersion {
  std::string name;
  std::string description;
  /// Why not to use it any more; nothing if the version is not deprecated.
  std::optional<std::string> deprecated;
  bool has_status = false;
  bool has_scale = false;
  /// The fields of the object besides apiVersion, kind and metadata.
  std::vector<CrdField> fields;
};

struct Crd {
  std::string group;
  std::string kind;
  std::string list_kind;
  std::string plural;
  std::vector<std::string> short_names;
  bool namespaced = true;
  /// Those that are served.
  std::vector<CrdVersion> versions;
};

/// The CustomResourceDefinitions of a file: one, several documents, or a List. Documents of other
/// kinds are passed over. `file` names the text in errors. Throws std::runtime_error, which names
/// the file, the line, the CRD and the field, if the text is no YAML, has no CRD, or has one that
/// an API server would refuse for its form.
std::vector<Crd> read_crds(std::string_view text, std::string_view file);

struct CrdHeaderOptions {
  /// The C++ namespace around those of the versions, such as "acme" or "acme::apis". Empty: the
  /// first part of each group, "stable" for stable.example.com, as namespace_name() has it.
  std::string cpp_namespace;
  /// Where the header comes from, for its first line.
  std::string source;
};

/// One header with everything: for each version a namespace with the enumerations, the views, the
/// drafts, the objects and the lists. Equal input gives equal text. Throws std::runtime_error if
/// two of the CRDs are the same one, or the namespace is no C++ name.
std::string generate_crd_header(const std::vector<Crd>& crds, const CrdHeaderOptions& options);

/// The header for the CRDs of several files, "-" for standard input, written to `output`; empty or
/// "-" for standard output. Throws as the functions above do, and std::runtime_error if a file
/// cannot be read or written.
void write_crd_header(const std::vector<std::string>& inputs, const std::string& output,
                      const std::string& cpp_namespace);

}  // namespace lookout::codegen
