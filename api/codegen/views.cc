// Writes the typed views: one header for each group and version of the schema.
#include <fmt/format.h>

#include <algorithm>
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

/// A field whose offset is in the object header (lookout/api/detail/object_header.h).
struct HeaderField {
  std::string_view part;
  std::string_view field;
  std::string_view member;  // of the header
};
constexpr HeaderField kHeaderFields[] = {
    {"metadata", "name", "name"},     {"metadata", "namespace", "ns"},
    {"metadata", "uid", "uid"},       {"metadata", "resourceVersion", "resource_version"},
    {"metadata", "labels", "labels"}, {"spec", "nodeName", "node_name"},
    {"status", "podIP", "pod_ip"},
};

constexpr std::string_view kObjectMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";

class ViewWriter final : public HeaderWriter {
 public:
  ViewWriter(const Facts& facts, const WellKnown& well_known)
      : HeaderWriter(facts, &TypeName::header) {
    for (const auto& resource : facts_.resources) {
      resources_.emplace(resource.gvk.group + "/" + resource.gvk.version + "/" + resource.gvk.kind,
                         &resource);
    }
    for (const auto& name : field_order(facts, well_known)) order_.emplace(name, order_.size());
    for (const auto& [_, type] : facts.types) {
      if (!type.gvk) continue;
      for (const auto& field : type.fields) {
        if (!is_part(field)) continue;
        for (const auto& known : kHeaderFields) {
          if (known.part == field.name && has_field(type_of(field.type.name), known.field))
            parts_[field.type.name].insert(&known);
        }
      }
    }
  }

 private:
  /// Metadata, spec and status have offsets in the header.
  static bool is_part(const Field& field) {
    return field.type.kind == TypeRef::Kind::kRef &&
           (field.name == "metadata" || field.name == "spec" || field.name == "status");
  }
  static bool has_field(const Type& type, std::string_view name) {
    return std::any_of(type.fields.begin(), type.fields.end(),
                       [&](const Field& field) { return field.name == name; });
  }

  /// ", &...": the last offset in the header at or before this field. Empty if there is none.
  std::string nearest_offset(const Type& type, const Field& field) const {
    const auto part = parts_.find(type.name);
    if (part == parts_.end()) return {};
    const HeaderField* best = nullptr;
    for (const HeaderField* known : part->second) {
      const std::size_t at = order_.at(std::string(known->field));
      if (at > order_.at(field.name)) continue;
      if (best == nullptr || at > order_.at(std::string(best->field))) best = known;
    }
    return best == nullptr ? "" : fmt::format(", &api::detail::ObjectHeader::{}", best->member);
  }

  const Type& type_of(const std::string& name) const { return find_type(facts_, name); }

  /// The C++ type of `type`. Records the needed headers.
  std::string cpp_type(const TypeRef& type, bool optional) {
    switch (type.kind) {
      case TypeRef::Kind::kScalar:
        return scalar_type(type.name, optional);
      case TypeRef::Kind::kArray:
        return fmt::format("api::ListView<{}>", element_type(type));
      case TypeRef::Kind::kMap:
        return fmt::format("api::MapView<{}>", element_type(type));
      case TypeRef::Kind::kRef:
        break;
    }
    const Type& target = type_of(type.name);
    if (target.alias) {
      if (is_quantity(target)) return "std::optional<api::Quantity>";
      return scalar_type(*target.alias, optional);
    }
    const TypeName name = split_type_name(target.name);
    if (name.header() == current_header_) return view_name(target);
    includes_.insert(name.header());
    return name.cpp_namespace() + "::" + view_name(target);
  }

  /// An element of a list or map is always present, so its type is never optional.
  std::string element_type(const TypeRef& container) {
    const std::string type = cpp_type(container.element.front(), false);
    return type == "std::optional<api::Quantity>" ? "api::Quantity" : type;
  }

  bool is_local_view(const TypeRef& type) const {
    return type.kind == TypeRef::Kind::kRef && !type_of(type.name).alias &&
           split_type_name(type.name).header() == current_header_;
  }

  /// The accessors of a class. The bodies of those that return a view of this header go to `bodies`,
  /// after all classes.
  std::string accessors(const Type& type, const std::string& class_name, bool object,
                        std::string& bodies) {
    std::string out;
    for (const auto& field : type.fields) {
      const std::string name = accessor_name(field.name);
      if (object && (name == "kind" || name == "api_version")) continue;
      if (object && field.type.kind == TypeRef::Kind::kRef && field.type.name == kObjectMeta)
        continue;
      const std::string result = cpp_type(field.type, !field.required);
      const std::string symbol = "api::sym::" + constant_name(field.name);
      const std::string offset = !object          ? nearest_offset(type, field)
                                 : is_part(field) ? ", &api::detail::ObjectHeader::" + field.name
                                                  : "";
      const std::string body = fmt::format("return field_as<{}>({}{});", result, symbol, offset);
      const std::string qualifiers =
          object && refers(result) ? "const& LOOKOUT_LIFETIME_BOUND" : "const";
      const std::string returned = not_assignable(result);
      if (is_local_view(field.type)) {
        out += fmt::format("  {} {}() {};\n", returned, name, qualifiers);
        bodies += fmt::format("inline {} {}::{}() {} {{ {} }}\n", returned, class_name, name,
                              qualifiers, body);
      } else {
        out += fmt::format("  {} {}() {} {{ {} }}\n", returned, name, qualifiers, body);
      }
      if (object && refers(result)) out += of_a_temporary(result, name);
    }
    return out;
  }

  std::string write_header(const std::vector<const Type*>& types) override {
    std::string forward;
    std::string classes;
    std::string bodies;
    for (const Type* type : types) {
      if (type->gvk && !nested_.contains(type->name)) continue;
      const std::string name = view_name(*type);
      forward += fmt::format("class {};\n", name);
      classes +=
          fmt::format("/// {0}\nclass {1} : public api::{2} {{\n public:\n  using {2}::{2};\n",
                      type->name, name, parts_.contains(type->name) ? "PartView" : "View");
      classes += accessors(*type, name, false, bodies);
      classes += "};\n\n";
    }
    for (const Type* type : types) {
      if (!type->gvk) continue;
      const std::string name = split_type_name(type->name).name;
      classes += fmt::format(
          "/// {}\nclass {} : public api::TypedObject {{\n public:\n  using "
          "TypedObject::TypedObject;\n",
          type->name, name);
      const auto resource =
          resources_.find(type->gvk->group + "/" + type->gvk->version + "/" + type->gvk->kind);
      if (resource != resources_.end()) {
        const Resource& r = *resource->second;
        classes += fmt::format(
            "  static constexpr api::ResourceType kResource{{\"{}\", \"{}\", \"{}\", \"{}\", "
            "{}}};\n",
            r.gvk.group, r.gvk.version, r.gvk.kind, r.plural, r.namespaced);
      }
      classes += accessors(*type, name, true, bodies);
      if (has_draft(*type)) {
        forward += fmt::format("class {}Draft;  // include \"{}\"\n", name,
                               split_type_name(type->name).draft_header());
        classes += fmt::format(
            "  /// A draft of a new object, and one over this object; include \"{}\" to call "
            "them.\n  static {}Draft draft(std::string_view name{});\n  {}Draft edit() const;\n",
            split_type_name(type->name).draft_header(), name,
            is_cluster_scoped(facts_, *type) ? "" : ", std::string_view ns", name);
      }
      classes += "};\n\n";
    }
    const std::string out =
        "// Generated by lookout-gen from the schema facts. Do not edit.\n"
        "//\n"
        "// Absent strings read as empty, absent lists, maps and structures as empty ones; "
        "numbers, booleans, times and quantities\n"
        "// that may be absent are optional, those that the schema requires read as zero if a "
        "server left them out.\n"
        "#pragma once\n\n#include <cstdint>\n#include <optional>\n#include <string>\n#include "
        "<string_view>\n\n"
        "#include \"lookout/base/attributes.h\"\n#include \"lookout/api/symbols.h\"\n#include "
        "\"lookout/api/typed_object.h\"\n#include "
        "\"lookout/api/view.h\"\n";
    return out + end_of_header(split_type_name(types.front()->name),
                               fmt::format("{}\n{}{}", forward, classes, bodies));
  }

  std::map<std::string, const Resource*> resources_;
  std::map<std::string, std::size_t> order_;                   // of the fields in an object
  std::map<std::string, std::set<const HeaderField*>> parts_;  // by the type's name
};

}  // namespace

Files generate_views(const Facts& facts, const WellKnown& well_known) {
  return ViewWriter(facts, well_known).write("lookout/k8s/types.h", "All typed views at once.");
}

}  // namespace lookout::codegen
