// The generator's model of CustomResourceDefinitions.
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
    kScalar,     // `name` as in cpp_types.h: "string", "integer:int32", "any" ...
    kQuantity,   // resource.Quantity
    kBuiltin,    // `name`: the full name of a built-in structure
    kList,       // of `element`
    kMap,        // from strings to `element`
    kStructure,  // with `fields`
  };

  static CrdType of(Kind kind, std::string name = {});

  Kind kind = Kind::kScalar;
  std::string name;
  std::vector<CrdType> element;
  std::vector<CrdField> fields;
  /// The structure also keeps unlisted fields.
  bool preserves_unknown = false;
  /// The schema's enum values; only for strings and integers.
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
  /// The deprecation warning; nullopt if the version is not deprecated.
  std::optional<std::string> deprecated;
  bool has_status = false;
  bool has_scale = false;
  /// The fields of the object, without apiVersion, kind and metadata.
  std::vector<CrdField> fields;
};

struct Crd {
  std::string group;
  std::string kind;
  std::string list_kind;
  std::string plural;
  std::vector<std::string> short_names;
  bool namespaced = true;
  /// The served versions.
  std::vector<CrdVersion> versions;
};

/// The CustomResourceDefinitions of a file: one or more documents, or a List. Skips other kinds.
/// `file` is the name for errors. Throws std::runtime_error, with the file, line, CRD and field, if
/// the text is not YAML, has no CRD, or has one whose form an API server would reject.
std::vector<Crd> read_crds(std::string_view text, std::string_view file);

struct CrdHeaderOptions {
  /// The C++ namespace around those of the versions, such as "acme" or "acme::apis". Empty: the
  /// first part of each group, "stable" for stable.example.com, as namespace_name() has it.
  std::string cpp_namespace;
  /// The source, for the header's first line.
  std::string source;
};

/// A header with a namespace per version, which has the enumerations, views, drafts, objects and
/// lists. Equal input gives equal text. Throws std::runtime_error for duplicate CRDs, or if the
/// namespace is not a valid C++ name.
std::string generate_crd_header(const std::vector<Crd>& crds, const CrdHeaderOptions& options);

/// Writes the header for the CRDs of several files ("-": standard input) to `output` (empty or "-":
/// standard output). Throws as the functions above do, and std::runtime_error if a file cannot be
/// read or written.
void write_crd_header(const std::vector<std::string>& inputs, const std::string& output,
                      const std::string& cpp_namespace);

}  // namespace lookout::codegen
