// Writes the header with the types of CRDs.
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "api/codegen/cpp_types.h"
#include "api/codegen/crd.h"
#include "api/codegen/crd_names.h"
#include "api/codegen/naming.h"
#include "lookout/api/field_names.h"
#include "lookout/base/ascii.h"

namespace lookout::codegen {
namespace {

constexpr std::string_view kObjectMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
constexpr std::string_view kListMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
constexpr std::size_t kWidth = 100;

using Kind = CrdType::Kind;

/// The fully qualified name of a built-in structure.
std::string builtin_name(std::string_view full_name) {
  const TypeName name = split_type_name(full_name);
  return fmt::format("::lookout::{}::{}", name.cpp_namespace(), name.name);
}

// ---- Documentation ----

/// Whether the character is allowed in a comment. Invisible ones that change the direction are not.
bool is_harmless(std::string_view rest) {
  const auto byte = static_cast<unsigned char>(rest[0]);
  if (byte < 0x20 || byte == 0x7F) return false;
  if (byte != 0xE2 || rest.size() < 3) return true;
  const auto second = static_cast<unsigned char>(rest[1]);
  const auto third = static_cast<unsigned char>(rest[2]);
  const bool marks = second == 0x80 && (third == 0x8E || third == 0x8F);
  const bool embeddings = second == 0x80 && third >= 0xAA && third <= 0xAE;
  const bool isolates = second == 0x81 && third >= 0xA6 && third <= 0xA9;
  return !marks && !embeddings && !isolates;
}

std::string clean(std::string_view line) {
  std::string out;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (is_harmless(line.substr(i))) {
      out += line[i];
    } else {
      out += ' ';
      // Skip the rest of a three-byte character.
      if (static_cast<unsigned char>(line[i]) == 0xE2) i += 2;
    }
  }
  out.erase(out.find_last_not_of(' ') + 1);
  return out;
}

void add_comment_line(std::string& out, std::string_view indent, std::string_view text) {
  out += indent;
  out += text.empty() ? "///" : "/// ";
  out += text;
  // A backslash or its trigraph at the end would continue the comment on the next line.
  if (text.ends_with('\\') || text.ends_with("?\?/")) out += '.';
  out += '\n';
}

/// Formats a text as a comment. Keeps line breaks, and wraps long lines.
std::string comment(std::string_view text, std::string_view indent) {
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string line = clean(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t room = kWidth - indent.size() - 4;
    while (line.size() > room) {
      const std::size_t own_indent = std::min(line.find_first_not_of(' '), line.size());
      std::size_t at = line.rfind(' ', room);
      if (at == std::string::npos || at <= own_indent) at = line.find(' ', own_indent);
      if (at == std::string::npos) break;
      add_comment_line(out, indent,
                       std::string_view(line).substr(0, line.find_last_not_of(' ', at) + 1));
      line = std::string(own_indent, ' ') +
             line.substr(std::min(line.find_first_not_of(' ', at), line.size()));
    }
    add_comment_line(out, indent, line);
  }
  return out;
}

std::string join(const std::vector<std::string>& parts, std::string_view between) {
  return fmt::format("{}", fmt::join(parts, between));
}

// ---- One version ----

/// The names of the members of api::Object, api::ObjectDraft and the classes here.
const std::set<std::string>& object_members() {
  static const std::set<std::string> kNames = {"adopt",
                                               "annotations",
                                               "api_version",
                                               "as",
                                               "at",
                                               "body",
                                               "build",
                                               "changed",
                                               "detach",
                                               "diff",
                                               "diff_except",
                                               "draft",
                                               "edit",
                                               "field_as",
                                               "from",
                                               "gvk",
                                               "header",
                                               "identify",
                                               "key",
                                               "key_hash",
                                               "kind",
                                               "labels",
                                               "memory_size",
                                               "metadata",
                                               "name",
                                               "ns",
                                               "original",
                                               "parse",
                                               "resource_version",
                                               "same",
                                               "set_metadata",
                                               "clear_metadata",
                                               "swap",
                                               "to_document",
                                               "to_json",
                                               "to_pretty_json",
                                               "uid"};
  return kNames;
}

const std::set<std::string>& part_members() {
  static const std::set<std::string> kNames = {"as_value", "field_as"};
  return kNames;
}

/// Without the underscore that avoids a keyword: set_default() is not a keyword.
std::string setter_base(const std::string& accessor) {
  return accessor.ends_with('_') ? accessor.substr(0, accessor.size() - 1) : accessor;
}

/// "_foo": its C++ names begin with the second character.
bool begins_with_symbol(const std::string& name) {
  const char c = name.empty() ? 'a' : name.front();
  return !base::is_alnum(c);
}

/// The names of the fields' accessors, in the same order.
std::vector<std::string> member_names(const std::vector<CrdField>& fields,
                                      const std::set<std::string>& taken) {
  NameScope scope(taken);
  std::vector<std::string> json_names;
  json_names.reserve(fields.size());
  for (const CrdField& field : fields) json_names.push_back(field.name);
  // Sorted, so that a name does not depend on the schema's order. If two names collide, "fooBar" comes
  // before "FooBar" and "_fooBar", and "title" before "setTitle".
  std::ranges::sort(json_names, {}, [](const std::string& name) {
    const std::string accessor = member_name(name);
    const bool verb = accessor.starts_with("set_") || accessor.starts_with("clear_");
    const bool capital = !name.empty() && name.front() >= 'A' && name.front() <= 'Z';
    return std::tuple(verb, begins_with_symbol(name), capital, name);
  });
  std::map<std::string, std::string> by_json;
  for (const std::string& name : json_names) {
    by_json[name] = scope.claim(member_name(name), [](const std::string& accessor) {
      const std::string base = setter_base(accessor);
      return std::set<std::string>{"set_" + base, "clear_" + base};
    });
  }
  std::vector<std::string> out;
  out.reserve(fields.size());
  for (const CrdField& field : fields) out.push_back(by_json.at(field.name));
  return out;
}

/// One version of one CRD.
using Member = std::pair<const Crd*, const CrdVersion*>;

/// The types of one version of one CRD.
class VersionWriter {
 public:
  VersionWriter(const Crd& crd, const CrdVersion& version, NameScope& scope,
                const std::map<Member, std::string>& class_of_kind)
      : crd_(crd), version_(version), scope_(scope), kind_(class_of_kind.at({&crd, &version})) {}

  std::string write() {
    declare(version_.fields, kind_);
    const std::vector<std::string> names = member_names(version_.fields, object_members());
    write_view(names);
    write_object(names);
    write_draft(names);
    write_list();
    return std::move(out_);
  }

 private:
  // The C++ types for a schema's types.

  std::string view_type(const CrdType& type, bool optional) const {
    switch (type.kind) {
      case Kind::kScalar:
        return scalar_type(type.name, optional);
      case Kind::kQuantity:
        return "std::optional<api::Quantity>";
      case Kind::kBuiltin:
        return builtin_name(type.name);
      case Kind::kList:
        return fmt::format("api::ListView<{}>", view_element(type));
      case Kind::kMap:
        return fmt::format("api::MapView<{}>", view_element(type));
      case Kind::kStructure:
        break;
    }
    return classes_.at(&type);
  }

  std::string view_element(const CrdType& container) const {
    const CrdType& element = container.element.front();
    return element.kind == Kind::kQuantity ? "api::Quantity" : view_type(element, false);
  }

  std::string draft_element(const CrdType& container) const {
    const CrdType& element = container.element.front();
    switch (element.kind) {
      case Kind::kScalar:
        return element.name == "any" ? "api::DraftPart" : scalar_type(element.name, false);
      case Kind::kQuantity:
        return "api::Quantity";
      case Kind::kBuiltin:
        return builtin_name(element.name) + "Draft";
      case Kind::kList: {
        const auto list = lists_.find(&element);
        return list == lists_.end() ? list_draft(element).first : list->second;
      }
      case Kind::kMap:
        return fmt::format("api::MapDraft<{}>", draft_element(element));
      case Kind::kStructure:
        break;
    }
    return classes_.at(&element) + "Draft";
  }

  /// The types of a list's key fields; empty if the list has no key, or one that cannot be compared.
  static std::vector<std::string> key_types(const CrdType& list) {
    std::vector<std::string> out;
    if (list.list_type != "map") return out;
    const CrdType& element = list.element.front();
    out.reserve(list.list_map_keys.size());
    for (const std::string& key : list.list_map_keys) {
      if (element.kind == Kind::kBuiltin) {
        out.emplace_back("std::string_view");
        continue;
      }
      const auto field = std::ranges::find(element.fields, key, &CrdField::name);
      if (field == element.fields.end() || field->type.kind != Kind::kScalar) return {};
      const std::string& scalar = field->type.name;
      if (scalar != "string" && !scalar.starts_with("integer:")) return {};
      out.push_back(scalar_type(scalar, false));
    }
    return out;
  }

  /// The type of a list in a draft, and its constructor's arguments after the part.
  std::pair<std::string, std::string> list_draft(const CrdType& list) const {
    const std::string element = draft_element(list);
    const std::vector<std::string> keys = key_types(list);
    if (keys.size() == 1) {
      return {fmt::format("api::KeyedListDraft<{}, {}>", element, keys.front()),
              ", " + cpp_literal(list.list_map_keys.front())};
    }
    if (!keys.empty()) {
      std::vector<std::string> literals;
      literals.reserve(keys.size());
      for (const std::string& key : list.list_map_keys) literals.push_back(cpp_literal(key));
      return {fmt::format("api::MultiKeyListDraft<{}, {}>", element, join(keys, ", ")),
              fmt::format(", {{{}}}", join(literals, ", "))};
    }
    const bool comparable = list.element.front().kind == Kind::kScalar &&
                            (element == "std::string_view" || element.starts_with("std::int") ||
                             element == "double" || element == "bool");
    if (list.list_type == "set" && comparable)
      return {fmt::format("api::SetDraft<{}>", element), ""};
    return {fmt::format("api::ListDraft<{}>", element), ""};
  }

  // Structures and enumerations come before their users.

  /// The innermost type of lists and maps.
  static const CrdType& bottom(const CrdType& type) {
    return type.element.empty() ? type : bottom(type.element.front());
  }

  void declare(const std::vector<CrdField>& fields, const std::string& prefix) {
    std::vector<std::reference_wrapper<const CrdField>> order(fields.begin(), fields.end());
    // If two names collide, "fooBar" comes before "_fooBar".
    std::ranges::stable_partition(
        order, [](const CrdField& field) { return !begins_with_symbol(field.name); });
    for (const CrdField& field : order) {
      const CrdType& type = bottom(field.type);
      const std::string name = prefix + pascal_name(field.name);
      if (type.kind == Kind::kStructure) {
        const std::string chosen = scope_.claim(
            name, [](const std::string& n) { return std::set<std::string>{n + "Draft"}; });
        classes_[&type] = chosen;
        declare(type.fields, chosen);
        write_structure(type, chosen, field);
      } else if (!type.values.empty()) {
        enums_[&type] = scope_.claim(name);
        write_enum(type, enums_.at(&type), field);
      }
      declare_lists(field.type, name, field);
    }
  }

  /// Keyed lists inside lists and maps get a class of their own with the keys.
  void declare_lists(const CrdType& container, const std::string& name, const CrdField& field) {
    if (container.element.empty()) return;
    const CrdType& element = container.element.front();
    declare_lists(element, name, field);
    if (element.kind != Kind::kList || key_types(element).empty()) return;
    const auto [base, arguments] = list_draft(element);
    const std::string& chosen = lists_[&element] = scope_.claim(name + "ListDraft");
    out_ += fmt::format(
        "/// Part of a draft: one of the lists of {0}.\nclass {1} : public {2} {{\n public:\n"
        "  explicit {1}(const api::DraftPart& part) : {2}(part{3}) {{}}\n}};\n\n",
        clean(field.name), chosen, base, arguments);
  }

  std::string path_text(const CrdField& field) const {
    return fmt::format("{}/{} {}: {}", crd_.group, version_.name, crd_.kind, field.name);
  }

  void write_enum(const CrdType& type, const std::string& name, const CrdField& field) {
    out_ += fmt::format("/// The values of {}.\nstruct {} {{\n", clean(field.name), name);
    NameScope scope({name});
    for (const auto& value : type.values) {
      if (const auto* text = std::get_if<std::string>(&value)) {
        // Without its size, the text would end at a NUL.
        const bool sized = text->find('\0') != std::string::npos;
        out_ += fmt::format("  static constexpr std::string_view {}{{{}{}}};\n",
                            scope.claim(enumerator_name(*text)), cpp_literal(*text),
                            sized ? fmt::format(", {}", text->size()) : "");
      } else {
        const std::int64_t number = std::get<std::int64_t>(value);
        out_ += fmt::format("  static constexpr {} {} = {};\n", scalar_type(type.name, false),
                            scope.claim(enumerator_name(number)), number_literal(number));
      }
    }
    out_ += "};\n\n";
  }

  static std::string number_literal(std::int64_t number) {
    // C++ has no negative literals, so the minimum needs an expression.
    if (number == INT64_MIN) return "INT64_MIN";
    return std::to_string(number);
  }

  std::string field_comment(const CrdField& field) const {
    std::string text = field.description;
    const auto add = [&](const std::string& line) {
      if (!text.empty() && !text.ends_with('\n')) text += '\n';
      text += line;
    };
    if (const auto it = enums_.find(&bottom(field.type)); it != enums_.end())
      add(fmt::format("Values: see {}.", it->second));
    if (!field.default_json.empty() && field.default_json.size() <= kWidth)
      add("Default: " + field.default_json);
    return comment(text, "  ");
  }

  /// The accessors of an object are marked as references into it; a view is a reference itself.
  static std::string_view qualifiers(const std::string& type, bool object) {
    return object && refers(type) ? "const& LOOKOUT_LIFETIME_BOUND" : "const";
  }

  std::string view_accessors(const std::vector<CrdField>& fields,
                             const std::vector<std::string>& names, bool object) const {
    std::string out;
    for (std::size_t i = 0; i < fields.size(); ++i) {
      const CrdField& field = fields[i];
      const std::string type = view_type(field.type, !field.required || field.nullable);
      const std::string key = api::is_schema_field(field.name)
                                  ? "api::sym::" + constant_name(field.name)
                                  : cpp_literal(field.name);
      out += field_comment(field);
      const std::string at = fmt::format("{}[{}]", object ? "body()" : "as_value()", key);
      out +=
          fmt::format("  {} {}() {} {{ return {}; }}\n", type, names[i], qualifiers(type, object),
                      type == "api::Value" ? at : fmt::format("api::from_value<{}>({})", type, at));
      if (object && refers(type)) out += of_a_temporary(type, names[i]);
    }
    return out;
  }

  void write_structure(const CrdType& type, const std::string& name, const CrdField& field) {
    const std::vector<std::string> names = member_names(type.fields, part_members());
    std::string about = field.description.empty() ? path_text(field) : field.description;
    if (type.preserves_unknown) about += "\nKeeps fields that are not listed here: as_value().";
    out_ += comment(about, "");
    out_ +=
        fmt::format("class {} : public api::View {{\n public:\n  using api::View::View;\n", name);
    out_ += view_accessors(type.fields, names, false);
    out_ += "};\n\n";
    const std::string draft = name + "Draft";
    out_ += fmt::format(
        "/// Part of a draft: {0}.\nclass {1} : public api::DraftPart {{\n public:\n"
        "  explicit {1}(const api::DraftPart& part) : api::DraftPart(part) {{}}\n",
        name, draft);
    for (std::size_t i = 0; i < type.fields.size(); ++i)
      write_draft_field(type.fields[i], names[i], draft);
    out_ += "};\n\n";
  }

  // Drafts.

  void add(std::string_view type, std::string_view signature, std::string_view qualifiers,
           std::string_view body) {
    out_ += fmt::format("  {} {} {} {{ {} }}\n", type, signature, qualifiers, body);
  }

  /// Adds a function that reads a member, or returns a view or a draft of it.
  void add_accessor(const std::string& type, const std::string& name, bool object,
                    std::string_view body) {
    add(type, name + "()", qualifiers(type, object), body);
    if (object && refers(type)) out_ += of_a_temporary(type, name);
  }

  void write_draft_field(const CrdField& field, const std::string& name,
                         const std::string& result) {
    const std::string at = fmt::format("(*this)[{}]", cpp_literal(field.name));
    const std::string base = setter_base(name);
    const bool object = result.ends_with('&');
    const std::string_view bound = object ? "const LOOKOUT_LIFETIME_BOUND" : "const";
    const auto set = [&](std::string_view parameter, std::string_view call) {
      add(result, fmt::format("set_{}({})", base, parameter), bound,
          fmt::format("{}; return *this;", call));
    };
    const auto set_value = [&](std::string_view parameter, std::string_view value = "value") {
      set(parameter, fmt::format("{}.set({})", at, value));
    };
    switch (field.type.kind) {
      case Kind::kStructure:
      case Kind::kBuiltin: {
        const std::string view = view_type(field.type, false);
        add_accessor(view + "Draft", name, object, fmt::format("return {}Draft({});", view, at));
        set_value(fmt::format("const {}& value", view));
        break;
      }
      case Kind::kList: {
        const auto [type, arguments] = list_draft(field.type);
        add_accessor(type, name, object, fmt::format("return {}({}{});", type, at, arguments));
        break;
      }
      case Kind::kMap: {
        const std::string type = fmt::format("api::MapDraft<{}>", draft_element(field.type));
        add_accessor(type, name, object, fmt::format("return {}({});", type, at));
        break;
      }
      case Kind::kQuantity:
        write_reader(field, name, object);
        set_value("const api::Quantity& value");
        out_ += "  /// Throws InvalidArgument if the text is not a quantity.\n";
        set("std::string_view value",
            fmt::format("api::detail::write_scalar<api::Quantity>({}, value)", at));
        break;
      case Kind::kScalar: {
        const std::string& scalar = field.type.name;
        if (scalar == "any") {
          add_accessor("api::DraftPart", name, object, fmt::format("return {};", at));
          set_value("api::Value value");
          break;
        }
        write_reader(field, name, object);
        if (scalar == "string:byte") {
          out_ += "  /// Raw bytes; they are written as base64.\n";
          set("std::string_view value", fmt::format("api::detail::write_bytes({}, value)", at));
        } else if (scalar == "string:date-time") {
          set_value("api::Time value", "std::string_view(api::format_time(value))");
        } else if (scalar == "string:int-or-string") {
          set_value("std::int32_t value");
          set_value("std::string_view value");
        } else {
          set_value(scalar_type(scalar, false) + " value");
        }
        break;
      }
    }
    add(result, fmt::format("clear_{}()", base), bound,
        fmt::format("{}.remove(); return *this;", at));
  }

  void write_reader(const CrdField& field, const std::string& name, bool object) {
    const std::string type = view_type(field.type, !field.required || field.nullable);
    add_accessor(type, name, object,
                 fmt::format("return field_as<{}>({});", type, cpp_literal(field.name)));
  }

  // The object.

  std::string object_comment() const {
    std::string text = version_.description;
    const auto add_line = [&](const std::string& line) {
      if (!text.empty() && !text.ends_with('\n')) text += '\n';
      text += line;
    };
    add_line(fmt::format("{}.{}, {}", crd_.plural, crd_.group,
                         crd_.namespaced ? "in namespaces" : "in no namespace"));
    if (!crd_.short_names.empty()) text += "; short: " + join(crd_.short_names, ", ");
    std::vector<std::string> subresources;
    if (version_.has_status) subresources.emplace_back("status");
    if (version_.has_scale) subresources.emplace_back("scale");
    if (!subresources.empty()) text += "; subresources: " + join(subresources, ", ");
    text += '.';
    if (version_.deprecated) {
      const std::string& why = *version_.deprecated;
      add_line("Deprecated" + (why.empty() ? std::string(".") : ": " + why));
    }
    return comment(text, "");
  }

  void write_view(const std::vector<std::string>& names) {
    out_ += fmt::format(
        "/// One of the items of a {0}List.\nclass {0}View : public api::View {{\n public:\n"
        "  using api::View::View;\n"
        "  {1} metadata() const {{ return api::from_value<{1}>(as_value()[api::sym::kMetadata]); "
        "}}\n",
        kind_, builtin_name(kObjectMeta));
    out_ += view_accessors(version_.fields, names, false);
    out_ += "};\n\n";
  }

  void write_object(const std::vector<std::string>& names) {
    out_ += fmt::format("class {}Draft;\n\n", kind_);
    out_ += object_comment();
    out_ += fmt::format(
        "class {0} : public api::TypedObject {{\n public:\n"
        "  using api::TypedObject::TypedObject;\n"
        "  static constexpr api::ResourceType kResource{{{1}, {2}, {3}, {4}, {5}}};\n"
        "  /// A draft of a new object, and one over this object.\n"
        "  static {0}Draft draft(std::string_view name{6});\n  {0}Draft edit() const;\n",
        kind_, cpp_literal(crd_.group), cpp_literal(version_.name), cpp_literal(crd_.kind),
        cpp_literal(crd_.plural), crd_.namespaced, ns_parameter());
    out_ += view_accessors(version_.fields, names, true);
    out_ += "};\n\n";
  }

  std::string_view ns_parameter() const { return crd_.namespaced ? ", std::string_view ns" : ""; }

  void write_draft(const std::vector<std::string>& names) {
    const std::string draft = kind_ + "Draft";
    out_ += fmt::format(
        "/// Draft: {0}.\nclass {1} : public api::ObjectDraft {{\n public:\n"
        "  explicit {1}(const {0}& original) : api::ObjectDraft(original) {{}}\n"
        "  explicit {1}(std::string_view name{2}) {{ identify({3}, {4}, name, {5}); }}\n"
        "  {0} build() const {{ return {0}(api::ObjectDraft::build()); }}\n",
        kind_, draft, ns_parameter(), cpp_literal(crd_.group + "/" + version_.name),
        cpp_literal(crd_.kind), crd_.namespaced ? "ns" : "{}");
    CrdField metadata;
    metadata.name = "metadata";
    metadata.type = CrdType::of(Kind::kBuiltin, std::string(kObjectMeta));
    const std::string result = "const " + draft + "&";
    write_draft_field(metadata, "metadata", result);
    for (std::size_t i = 0; i < names.size(); ++i)
      write_draft_field(version_.fields[i], names[i], result);
    out_ += fmt::format(
        "}};\n\n"
        "inline {1} {0}::draft(std::string_view name{2}) {{ return {1}(name{3}); }}\n"
        "inline {1} {0}::edit() const {{ return {1}(*this); }}\n\n",
        kind_, draft, ns_parameter(), crd_.namespaced ? ", ns" : "");
  }

  void write_list() {
    out_ += fmt::format(
        "/// {0}, as a server answers.\nclass {1}List : public api::TypedObject {{\n public:\n"
        "  using api::TypedObject::TypedObject;\n",
        clean(crd_.list_kind), kind_);
    const std::string metadata = builtin_name(kListMeta);
    add_accessor(metadata, "metadata", true,
                 fmt::format("return field_as<{}>(api::sym::kMetadata);", metadata));
    const std::string items = fmt::format("api::ListView<{}View>", kind_);
    add_accessor(items, "items", true,
                 fmt::format("return field_as<{}>(api::sym::kItems);", items));
    out_ += "};\n\n";
  }

  const Crd& crd_;
  const CrdVersion& version_;
  NameScope& scope_;
  const std::string kind_;
  std::map<const CrdType*, std::string> classes_;
  std::map<const CrdType*, std::string> enums_;
  std::map<const CrdType*, std::string> lists_;
  std::string out_;
};

// ---- The header ----

std::string write_namespace(const std::string& cpp_namespace, const std::vector<Member>& members) {
  // Kinds first: they keep the names in the CRDs.
  // Inside drafts, DraftPart and ObjectDraft name the base classes.
  NameScope scope({"api", "DraftPart"});
  std::map<Member, std::string> class_of_kind;
  for (const Member& member : members) {
    const std::string kind = pascal_name(member.first->kind);
    class_of_kind[member] =
        scope.claim(kind == "ObjectDraft" ? "ObjectDraft_2" : kind, [](const std::string& name) {
          return std::set<std::string>{name + "View", name + "Draft", name + "List"};
        });
  }
  std::string out =
      fmt::format("namespace {} {{\n\nnamespace api = ::lookout::api;\n\n", cpp_namespace);
  for (const auto& [crd, version] : members)
    out += VersionWriter(*crd, *version, scope, class_of_kind).write();
  return out + fmt::format("}}  // namespace {}\n", cpp_namespace);
}

}  // namespace

std::string generate_crd_header(const std::vector<Crd>& crds, const CrdHeaderOptions& options) {
  if (!options.cpp_namespace.empty() && !is_namespace(options.cpp_namespace)) {
    throw std::runtime_error(fmt::format(
        "\"{}\" is no C++ namespace: give one such as acme or acme::apis", options.cpp_namespace));
  }
  std::set<std::tuple<std::string, std::string, std::string>> kinds;
  std::map<std::string, std::vector<Member>> namespaces;
  for (const Crd& crd : crds) {
    for (const CrdVersion& version : crd.versions) {
      if (!kinds.emplace(crd.group, version.name, crd.kind).second) {
        throw std::runtime_error(fmt::format("{}/{} {} is defined twice: leave one of them out",
                                             crd.group, version.name, crd.kind));
      }
      const std::string outer = options.cpp_namespace.empty()
                                    ? namespace_name(crd.group.substr(0, crd.group.find('.')))
                                    : options.cpp_namespace;
      namespaces[outer + "::" + namespace_name(version.name)].push_back({&crd, &version});
    }
  }
  const TypeName meta = split_type_name(kObjectMeta);
  std::string out = fmt::format(
      "// Generated by lookout from {}. Do not edit.\n"
      "//\n"
      "// Absent strings read as empty, absent lists, maps and structures as empty ones. Numbers,\n"
      "// booleans, times and quantities that may be absent are optional; those that the schema\n"
      "// requires read as zero if a server left them out. In drafts, accessors read what the "
      "draft\n"
      "// holds now, set_ writes and clear_ removes.\n"
      "#pragma once\n\n"
      "#include <cstdint>\n#include <optional>\n#include <string>\n#include <string_view>\n\n",
      clean(options.source));
  std::set<std::string> includes = {
      "lookout/api/draft.h",        "lookout/api/multi_key_list_draft.h",
      "lookout/api/resource.h",     "lookout/api/set_draft.h",
      "lookout/api/symbols.h",      "lookout/api/time.h",
      "lookout/api/typed_object.h", "lookout/api/view.h",
      "lookout/base/attributes.h",  meta.draft_header()};
  for (const std::string& include : includes) out += fmt::format("#include \"{}\"\n", include);
  for (const auto& [name, members] : namespaces) out += "\n" + write_namespace(name, members);
  return out;
}

}  // namespace lookout::codegen
