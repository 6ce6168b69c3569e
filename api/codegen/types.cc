// The table of the schema's types: structures with their fields, lists, maps and scalars.
#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <tuple>

#include "api/codegen/generate.h"

namespace lookout::codegen {
namespace {

constexpr std::size_t kNoSymbol = 0xFFFF;

/// The enumerator in api/type_table.h for a scalar of the facts.
std::string scalar_constant(const std::string& name) {
  static const std::map<std::string, std::string> kScalars = {
      {"string", "kString"},
      {"string:byte", "kBytes"},
      {"string:date-time", "kDateTime"},
      {"string:int-or-string", "kIntOrString"},
      {"integer:int32", "kInt32"},
      {"integer:int64", "kInt64"},
      {"number:double", "kDouble"},
      {"boolean", "kBoolean"},
      {"object", "kObject"},
      {"any", "kAny"},
  };
  const auto it = kScalars.find(name);
  if (it == kScalars.end()) throw std::runtime_error(fmt::format("unknown scalar {}", name));
  return it->second;
}

unsigned one_of(const std::string& value, std::initializer_list<std::string_view> values,
                const std::string& where) {
  unsigned i = 0;
  for (const auto& candidate : values) {
    if (value == candidate) return i;
    ++i;
  }
  throw std::runtime_error(fmt::format("{}: unexpected {}", where, value));
}

unsigned patch_strategies(const std::string& text, const std::string& where) {
  unsigned out = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    out |= 1u << one_of(text.substr(begin, end - begin), {"merge", "replace", "retainKeys"}, where);
    begin = end + 1;
  }
  return out;
}

/// Numbers the types: first the named ones, sorted by name, then lists, maps and scalars in order of
/// appearance.
class TypeNumbers {
 public:
  explicit TypeNumbers(const Facts& facts) {
    for (const auto& [name, _] : facts.types) named_.emplace(name, named_.size());
  }

  std::size_t number(const TypeRef& type) {
    if (type.kind == TypeRef::Kind::kRef) {
      const auto it = named_.find(type.name);
      if (it == named_.end())
        throw std::runtime_error(fmt::format("no type has the name {}", type.name));
      return it->second;
    }
    const bool scalar = type.kind == TypeRef::Kind::kScalar;
    const std::size_t element = scalar ? 0 : number(type.element.front());
    const auto key = std::tuple(type.kind, type.name, element);
    const auto [it, added] = others_.emplace(key, named_.size() + rows_.size());
    if (added) {
      rows_.push_back(scalar
                          ? fmt::format("0, Shape::kScalar, Scalar::{}", scalar_constant(type.name))
                          : fmt::format("{}, Shape::{}, Scalar::kNone", element,
                                        type.kind == TypeRef::Kind::kMap ? "kMap" : "kList"));
    }
    return it->second;
  }

  const std::vector<std::string>& rows() const { return rows_; }

 private:
  std::map<std::string, std::size_t> named_;
  std::map<std::tuple<TypeRef::Kind, std::string, std::size_t>, std::size_t> others_;
  std::vector<std::string> rows_;
};

class TableWriter {
 public:
  TableWriter(const Facts& facts, const WellKnown& well_known)
      : facts_(facts), symbols_(symbol_strings(facts, well_known)), numbers_(facts) {
    key_set({});
  }

  std::string write() {
    std::string types;
    std::string fields;
    std::string names;
    std::string name_offsets;
    std::string kinds;
    std::size_t field_count = 0;
    std::size_t name_size = 0;
    std::map<std::tuple<std::string, std::string, std::string>, std::size_t> types_of_kinds;

    std::size_t number = 0;
    for (const auto& [name, type] : facts_.types) {
      types += fmt::format("    {{{}, 0, {}}},  // {}\n", field_count,
                           type.alias ? "Shape::kScalar, Scalar::" + scalar_constant(*type.alias)
                                      : std::string("Shape::kStruct, Scalar::kNone"),
                           name);
      names += fmt::format("    \"{}\"\n", name);
      name_offsets += fmt::format("    {},\n", name_size);
      name_size += name.size();
      if (type.gvk)
        types_of_kinds.emplace(std::tuple(type.gvk->kind, type.gvk->group, type.gvk->version),
                               number);
      // DeleteOptions is a kind without a resource: the body of a deletion.
      if (name.ends_with(".meta.v1.DeleteOptions"))
        types_of_kinds.emplace(std::tuple("DeleteOptions", "", "v1"), number);
      for (const Field* field : sorted_fields(type)) {
        fields += row(*field, name);
        ++field_count;
      }
      ++number;
    }
    for (const auto& rest : numbers_.rows())
      types += fmt::format("    {{{}, {}}},\n", field_count, rest);
    types += fmt::format("    {{{}, 0, Shape::kScalar, Scalar::kNone}},\n", field_count);
    name_offsets += fmt::format("    {},\n", name_size);
    for (const auto& [key, type] : types_of_kinds) {
      const auto& [kind, group, version] = key;
      kinds += fmt::format("    {{\"{}\", \"{}\", \"{}\", {}}},\n", kind, group, version, type);
    }

    std::string out = "// Generated by lookout-gen from the schema facts. Do not edit.\n\n";
    out += fmt::format("constexpr std::size_t kNamedTypes = {};\n\n", facts_.types.size());
    out +=
        "// The fields of a type end where those of the next one begin; the last row is there for "
        "that only.\n";
    out += "constexpr TypeEntry kTypes[] = {\n" + types + "};\n\n";
    out += "// Ordered by symbol within each type.\n";
    out += "constexpr FieldEntry kFields[] = {\n" + fields + "};\n\n";
    out += "constexpr std::uint16_t kListMapKeys[] = {" + key_symbols_ + "};\n";
    out += "constexpr std::uint8_t kListMapKeyOffsets[] = {0," + key_offsets_ + "};\n\n";
    out += "constexpr char kTypeNames[] =\n" + names + "    ;\n\n";
    out += "constexpr std::uint32_t kTypeNameOffsets[] = {\n" + name_offsets + "};\n\n";
    out += "constexpr KindEntry kKinds[] = {\n" + kinds + "};\n";
    return out;
  }

 private:
  std::size_t symbol(const std::string& text) const {
    const auto it = std::lower_bound(symbols_.begin(), symbols_.end(), text);
    if (it == symbols_.end() || *it != text)
      throw std::runtime_error(fmt::format("{} is not a symbol", text));
    return static_cast<std::size_t>(it - symbols_.begin());
  }

  static std::vector<const Field*> sorted_fields(const Type& type) {
    std::vector<const Field*> out;
    out.reserve(type.fields.size());
    for (const auto& field : type.fields) out.push_back(&field);
    std::sort(out.begin(), out.end(), [](auto* a, auto* b) { return a->name < b->name; });
    return out;
  }

  /// The number of a key set; 0 is the empty set.
  std::size_t key_set(const std::vector<std::string>& keys) {
    const auto [it, added] = key_sets_.emplace(keys, key_sets_.size());
    if (added) {
      for (const auto& key : keys) key_symbols_ += fmt::format("{}, ", symbol(key));
      key_count_ += keys.size();
      key_offsets_ += fmt::format(" {},", key_count_);
    }
    return it->second;
  }

  std::string row(const Field& field, const std::string& type_name) {
    const std::string where = type_name + "." + field.name;
    const unsigned flags = (field.required ? 1u : 0u) |
                           patch_strategies(field.patch_strategy, where) << 1 |
                           one_of(field.list_type, {"", "atomic", "set", "map"}, where) << 4 |
                           one_of(field.map_type, {"", "atomic", "granular"}, where) << 6;
    return fmt::format("    {{{}, {}, {}, {}, {}}},  // {}\n", symbol(field.name),
                       numbers_.number(field.type),
                       field.patch_merge_key.empty() ? kNoSymbol : symbol(field.patch_merge_key),
                       flags, key_set(field.list_map_keys), field.name);
  }

  const Facts& facts_;
  const std::vector<std::string> symbols_;
  TypeNumbers numbers_;
  std::map<std::vector<std::string>, std::size_t> key_sets_;
  std::string key_symbols_;
  std::string key_offsets_;
  std::size_t key_count_ = 0;
};

}  // namespace

Files generate_types(const Facts& facts, const WellKnown& well_known) {
  return {{"api/type_table.inc", TableWriter(facts, well_known).write()}};
}

}  // namespace lookout::codegen
