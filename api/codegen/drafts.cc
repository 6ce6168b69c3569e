// Writes the typed drafts: one header for each group and version of the schema.
#include <fmt/format.h>

#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "api/codegen/cpp_types.h"
#include "api/codegen/generate.h"
#include "api/codegen/naming.h"

namespace lookout::codegen {
namespace {

class DraftWriter final : public HeaderWriter {
 public:
  explicit DraftWriter(const Facts& facts) : HeaderWriter(facts, &TypeName::draft_header) {}

 private:
  /// The name of a structure's view or draft in the current header.
  std::string qualified(const Type& target, std::string_view suffix) {
    const TypeName name = split_type_name(target.name);
    std::string plain = view_name(target) + std::string(suffix);
    if (name.draft_header() == current_header_) return plain;
    includes_.insert(name.draft_header());
    return name.cpp_namespace() + "::" + plain;
  }

  /// The structure that a type refers to; null for scalars, lists, maps and aliases of scalars.
  const Type* structure(const TypeRef& type) const {
    if (type.kind != TypeRef::Kind::kRef) return nullptr;
    const Type& target = find_type(facts_, type.name);
    return target.alias ? nullptr : &target;
  }

  std::string scalar_of(const TypeRef& type) const {
    if (type.kind != TypeRef::Kind::kRef) return type.name;
    return *find_type(facts_, type.name).alias;
  }

  bool is_quantity_ref(const TypeRef& type) const {
    return type.kind == TypeRef::Kind::kRef && is_quantity(find_type(facts_, type.name));
  }

  /// The type of an element of a list or map.
  std::string element_type(const TypeRef& type) {
    if (type.kind == TypeRef::Kind::kArray)
      return fmt::format("api::ListDraft<{}>", element_type(type.element.front()));
    if (type.kind == TypeRef::Kind::kMap)
      return fmt::format("api::MapDraft<{}>", element_type(type.element.front()));
    if (const Type* target = structure(type)) return qualified(*target, "Draft");
    if (is_quantity_ref(type)) return "api::Quantity";
    return scalar_type(scalar_of(type), false);
  }

  /// The type of the list's key field; empty if there is none.
  std::string merge_key_type(const Field& field) const {
    const Type* element =
        field.type.kind == TypeRef::Kind::kArray ? structure(field.type.element.front()) : nullptr;
    if (element == nullptr) return {};
    std::string key = field.patch_merge_key;
    if (key.empty() && field.list_map_keys.size() == 1) key = field.list_map_keys.front();
    for (const Field& each : element->fields) {
      if (each.name != key || each.type.kind != TypeRef::Kind::kScalar) continue;
      return scalar_type(each.type.name, false);
    }
    return {};
  }

  static std::string merge_key(const Field& field) {
    return field.patch_merge_key.empty() ? field.list_map_keys.front() : field.patch_merge_key;
  }

  /// Whether Go's encoder omits the field if it is zero (omitempty, not a pointer).
  bool is_omitted_if_zero(const Field& field) const {
    if (field.pointer || field.always || !field.number) return false;
    if (field.type.kind == TypeRef::Kind::kArray || field.type.kind == TypeRef::Kind::kMap ||
        structure(field.type) != nullptr || is_quantity_ref(field.type)) {
      return false;
    }
    const std::string type = scalar_type(scalar_of(field.type), false);
    return type == "std::string_view" || is_arithmetic(type);
  }

  struct Setter {
    std::string parameter;   // "std::int32_t value"
    std::string expression;  // the argument of DraftPart::set()
  };

  std::vector<Setter> setters(const TypeRef& type) const {
    const std::string text = "std::string_view value";
    if (is_quantity_ref(type)) return {{"const api::Quantity& value", "value"}};
    const std::string scalar = scalar_of(type);
    if (scalar == "string") return {{text, "value"}};
    if (scalar == "string:int-or-string") return {{"std::int32_t value", "value"}, {text, "value"}};
    if (scalar == "string:date-time") {
      return {{"api::Time value", type.name.ends_with(".MicroTime")
                                      ? "std::string_view(api::format_micro_time(value))"
                                      : "std::string_view(api::format_time(value))"}};
    }
    if (scalar == "any" || scalar == "object") return {{"api::Value value", "value"}};
    return {{scalar_type(scalar, false) + " value", "value"}};
  }

  /// The accessors of one field.
  void write_field(const Field& field, const std::string& result, const std::string& class_name,
                   std::string& classes, std::string& bodies) {
    const std::string name = accessor_name(field.name);
    const std::string base = name.ends_with('_') ? name.substr(0, name.size() - 1) : name;
    const auto add = [&](const std::string& type, const std::string& signature,
                         const std::string& body, bool later) {
      // An accessor that returns a reference into a draft is marked, and cannot be called on a
      // temporary draft. (A part of a draft is a reference itself.)
      const bool object = result != class_name;
      const bool reads = object && type != result && refers(type);
      const std::string_view bound =
          object && (reads || type == result) ? " LOOKOUT_LIFETIME_BOUND" : "";
      const std::string_view qualifiers = reads ? "const&" : "const";
      const bool getter = signature == name + "()";
      const std::string returned = getter ? not_assignable(type) : type;
      if (later) {
        classes += fmt::format("  {} {} {}{};\n", returned, signature, qualifiers, bound);
        bodies += fmt::format("inline {} {}::{} {}{} {{ {} }}\n", returned, class_name, signature,
                              qualifiers, bound, body);
      } else {
        classes +=
            fmt::format("  {} {} {}{} {{ {} }}\n", returned, signature, qualifiers, bound, body);
      }
      if (reads) classes += of_a_temporary(type, name);
    };
    const auto set = [&](const Setter& setter) {
      const std::string_view verb = is_omitted_if_zero(field) ? "set_or_omit" : "set";
      add(result, fmt::format("set_{}({})", base, setter.parameter),
          fmt::format("(*this)[\"{}\"].{}({}); return *this;", field.name, verb, setter.expression),
          false);
    };

    if (const Type* target = structure(field.type)) {
      const std::string draft = qualified(*target, "Draft");
      const bool later = draft.find(':') == std::string::npos;
      add(draft, name + "()", fmt::format("return {}((*this)[\"{}\"]);", draft, field.name), later);
      set({fmt::format("const {}& value", qualified(*target, "")), "value"});
    } else if (field.type.kind == TypeRef::Kind::kArray) {
      const std::string element = element_type(field.type.element.front());
      if (const std::string key = merge_key_type(field); !key.empty()) {
        const std::string list = fmt::format("api::KeyedListDraft<{}, {}>", element, key);
        add(list, name + "()",
            fmt::format("return {}((*this)[\"{}\"], \"{}\");", list, field.name, merge_key(field)),
            true);
      } else {
        const std::string list = fmt::format("api::ListDraft<{}>", element);
        add(list, name + "()", fmt::format("return {}((*this)[\"{}\"]);", list, field.name), true);
      }
    } else if (field.type.kind == TypeRef::Kind::kMap) {
      const std::string map =
          fmt::format("api::MapDraft<{}>", element_type(field.type.element.front()));
      add(map, name + "()", fmt::format("return {}((*this)[\"{}\"]);", map, field.name), true);
    } else {
      const std::string type = is_quantity_ref(field.type)
                                   ? "std::optional<api::Quantity>"
                                   : scalar_type(scalar_of(field.type), !field.required);
      add(type, name + "()", fmt::format("return field_as<{}>(\"{}\");", type, field.name), false);
      if (type == "api::Bytes") {
        classes += fmt::format("  /// Raw bytes; they are written as base64.\n");
        add(result, fmt::format("set_{}(std::string_view value)", base),
            fmt::format("api::detail::write_bytes((*this)[\"{}\"], value); return *this;",
                        field.name),
            false);
      } else {
        for (const Setter& setter : setters(field.type)) set(setter);
        if (is_quantity_ref(field.type)) {
          classes += "  /// Throws InvalidArgument if the text is not a quantity.\n";
          add(result, fmt::format("set_{}(std::string_view value)", base),
              fmt::format("api::detail::write_scalar<api::Quantity>((*this)[\"{}\"], value); "
                          "return *this;",
                          field.name),
              false);
        }
      }
    }
    add(result, fmt::format("clear_{}()", base),
        fmt::format("(*this)[\"{}\"].remove(); return *this;", field.name), false);
  }

  void write_part(const Type& type, std::string& forward, std::string& classes,
                  std::string& bodies) {
    const std::string name = view_name(type) + "Draft";
    forward += fmt::format("class {};\n", name);
    classes += fmt::format(
        "/// Part of a draft: {}\nclass {} : public api::DraftPart {{\n public:\n  explicit "
        "{}(const "
        "api::DraftPart& part) : DraftPart(part) {{}}\n",
        type.name, name, name);
    for (const Field& field : type.fields) write_field(field, name, name, classes, bodies);
    classes += "};\n\n";
  }

  void write_object(const Type& type, std::string& forward, std::string& classes,
                    std::string& bodies) {
    const std::string plain = split_type_name(type.name).name;
    const std::string name = plain + "Draft";
    const bool cluster = is_cluster_scoped(facts_, type);
    const std::string_view ns_parameter = cluster ? "" : ", std::string_view ns";
    const std::string api_version =
        type.gvk->group.empty() ? type.gvk->version : type.gvk->group + "/" + type.gvk->version;
    forward += fmt::format("class {};\n", name);
    classes += fmt::format(
        "/// Draft: {0}\nclass {1} : public api::ObjectDraft {{\n public:\n"
        "  explicit {1}(const {2}& original) : ObjectDraft(original) {{}}\n"
        "  explicit {1}(std::string_view name{3}) {{ identify(\"{4}\", \"{5}\", name, {6}); }}\n"
        "  {2} build() const {{ return {2}(ObjectDraft::build()); }}\n",
        type.name, name, plain, ns_parameter, api_version, type.gvk->kind, cluster ? "{}" : "ns");
    for (const Field& field : type.fields) {
      if (field.name == "kind" || field.name == "apiVersion") continue;
      write_field(field, "const " + name + "&", name, classes, bodies);
    }
    classes += "};\n\n";
    bodies += fmt::format(
        "inline {1} {0}::draft(std::string_view name{2}) {{ return {1}(name{3}); }}\n"
        "inline {1} {0}::edit() const {{ return {1}(*this); }}\n",
        plain, name, ns_parameter, cluster ? "" : ", ns");
  }

  std::string write_header(const std::vector<const Type*>& types) override {
    std::string forward;
    std::string classes;
    std::string bodies;
    for (const Type* type : types) {
      if (!type->gvk || nested_.contains(type->name)) write_part(*type, forward, classes, bodies);
    }
    for (const Type* type : types) {
      if (has_draft(*type)) write_object(*type, forward, classes, bodies);
    }
    const TypeName name = split_type_name(types.front()->name);
    const std::string out = fmt::format(
        "// Generated by lookout-gen from the schema facts. Do not edit.\n"
        "//\n"
        "// Accessors read what the draft holds now, as those of the views in {0} do; set_ writes, "
        "clear_ removes.\n"
        "#pragma once\n\n#include <cstdint>\n#include <optional>\n#include <string>\n#include "
        "<string_view>\n\n"
        "#include \"lookout/base/attributes.h\"\n#include \"lookout/api/draft.h\"\n#include "
        "\"{0}\"\n",
        name.header());
    return out + end_of_header(name, fmt::format("{}\n{}{}", forward, classes, bodies));
  }
};

}  // namespace

Files generate_drafts(const Facts& facts) {
  return DraftWriter(facts).write("lookout/k8s/drafts.h", "All typed drafts at once.");
}

}  // namespace lookout::codegen
