// Reads CustomResourceDefinitions.
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <set>
#include <stdexcept>
#include <system_error>
#include <utility>

#include "api/codegen/crd.h"
#include "lookout/base/yaml_tree.h"

namespace lookout::codegen {
namespace {

constexpr std::string_view kMeta = "io.k8s.apimachinery.pkg.apis.meta.v1.";
// Real CRDs are nested about 20 levels deep.
constexpr int kMaxDepth = 100;

std::string_view text_of(const YamlNode* node) {
  return node != nullptr && node->kind == YamlNode::Kind::kScalar ? std::string_view(node->text)
                                                                  : std::string_view();
}

bool is_plain_true(const YamlNode* node) {
  return node != nullptr && node->kind == YamlNode::Kind::kScalar && !node->quoted &&
         is_yaml_true(node->text);
}

bool is_map(const YamlNode* node) { return node != nullptr && node->kind == YamlNode::Kind::kMap; }

std::vector<std::string> texts_of(const YamlNode* node) {
  std::vector<std::string> out;
  if (node == nullptr) return out;
  out.reserve(node->items.size());
  for (const YamlNode* item : node->items) out.emplace_back(text_of(item));
  return out;
}

/// The pattern that controller-gen writes for a resource.Quantity.
bool is_quantity_pattern(std::string_view pattern) {
  return pattern.find("[KMGTPE]i") != std::string_view::npos &&
         pattern.find("[numkMGTPE]") != std::string_view::npos;
}

const CrdField* find_field(const CrdType& type, std::string_view name) {
  const auto it = std::ranges::find(type.fields, name, &CrdField::name);
  return it == type.fields.end() ? nullptr : &*it;
}

/// Whether the field exists and is this plain scalar.
bool has_scalar(const CrdType& type, std::string_view field, std::string_view scalar) {
  const CrdField* found = find_field(type, field);
  return found != nullptr && found->type.kind == CrdType::Kind::kScalar &&
         found->type.name == scalar;
}

bool is_list_of_strings(const CrdField* field) {
  return field != nullptr && field->type.kind == CrdType::Kind::kList &&
         field->type.element.front().kind == CrdType::Kind::kScalar &&
         field->type.element.front().name == "string";
}

bool is_condition(const CrdType& type) {
  constexpr std::size_t kFields = 6;
  return type.fields.size() == kFields && has_scalar(type, "message", "string") &&
         has_scalar(type, "reason", "string") && has_scalar(type, "status", "string") &&
         has_scalar(type, "type", "string") &&
         has_scalar(type, "lastTransitionTime", "string:date-time") &&
         has_scalar(type, "observedGeneration", "integer:int64");
}

bool is_label_selector(const CrdType& type) {
  constexpr std::size_t kFields = 2;
  constexpr std::size_t kExpressionFields = 3;
  if (type.fields.size() != kFields) return false;
  const CrdField* labels = find_field(type, "matchLabels");
  const CrdField* expressions = find_field(type, "matchExpressions");
  if (labels == nullptr || expressions == nullptr) return false;
  if (labels->type.kind != CrdType::Kind::kMap ||
      labels->type.element.front().kind != CrdType::Kind::kScalar ||
      labels->type.element.front().name != "string" ||
      expressions->type.kind != CrdType::Kind::kList) {
    return false;
  }
  const CrdType& expression = expressions->type.element.front();
  return expression.fields.size() == kExpressionFields && has_scalar(expression, "key", "string") &&
         has_scalar(expression, "operator", "string") &&
         is_list_of_strings(find_field(expression, "values"));
}

/// Reads the documents of one file.
class Reader {
 public:
  explicit Reader(std::string_view file) : file_(file) {}

  std::vector<Crd> read(std::string_view text) {
    for (const YamlDocument& document : split_yaml_documents(text)) {
      line_offset_ = document.first_line - 1;
      try {
        const YamlTree tree(document, manifest_limits());
        read_document(tree.root());
      } catch (const YamlError& e) {
        throw std::runtime_error(
            fmt::format("{}:{}: {}", file_, line_offset_ + std::max(e.line(), 1), e.what()));
      }
    }
    if (crds_.empty()) {
      throw std::runtime_error(fmt::format(
          "{}: no CustomResourceDefinition: give the YAML of one, as `kubectl get crd NAME -o "
          "yaml` prints it",
          file_));
    }
    return std::move(crds_);
  }

 private:
  [[noreturn]] void fail(const YamlNode* node, const std::string& message) const {
    const std::string line =
        node == nullptr || node->line == 0 ? "" : fmt::format(":{}", line_offset_ + node->line);
    throw std::runtime_error(
        fmt::format("{}{}: {}{}{}", file_, line, where_, where_.empty() ? "" : ": ", message));
  }

  const YamlNode& map_at(const YamlNode& node, std::string_view key) const {
    const YamlNode* found = node.find(key);
    if (!is_map(found)) fail(&node, fmt::format("needs the object \"{}\"", key));
    return *found;
  }

  std::string text_at(const YamlNode& node, std::string_view key) const {
    const std::string_view found = text_of(node.find(key));
    if (found.empty()) fail(&node, fmt::format("needs the text \"{}\"", key));
    return std::string(found);
  }

  void read_document(const YamlNode& node) {
    where_.clear();
    if (node.kind == YamlNode::Kind::kNull) return;
    if (node.kind != YamlNode::Kind::kMap) fail(&node, "a document that is not an object");
    if (const YamlNode* items = node.find("items"); text_of(node.find("kind")).ends_with("List")) {
      if (items == nullptr) return;
      for (const YamlNode* item : items->items) {
        // A kind with a name such as AllowList may have its own items.
        if (is_map(item)) read_document(*item);
      }
      return;
    }
    const std::string_view version = text_of(node.find("apiVersion"));
    if (text_of(node.find("kind")) != "CustomResourceDefinition" ||
        !version.starts_with("apiextensions.k8s.io/")) {
      return;
    }
    const YamlNode* metadata = node.find("metadata");
    where_ = is_map(metadata) ? std::string(text_of(metadata->find("name"))) : std::string();
    if (version != "apiextensions.k8s.io/v1") {
      fail(node.find("apiVersion"),
           fmt::format("{} is not served by Kubernetes since 1.22: convert the definition to "
                       "apiextensions.k8s.io/v1",
                       version));
    }
    read_crd(map_at(node, "spec"));
  }

  void read_crd(const YamlNode& spec) {
    Crd crd;
    crd.group = text_at(spec, "group");
    const YamlNode& names = map_at(spec, "names");
    crd.kind = text_at(names, "kind");
    crd.plural = text_at(names, "plural");
    crd.list_kind = text_of(names.find("listKind"));
    if (crd.list_kind.empty()) crd.list_kind = crd.kind + "List";
    crd.short_names = texts_of(names.find("shortNames"));
    const std::string scope = text_at(spec, "scope");
    if (scope != "Namespaced" && scope != "Cluster")
      fail(spec.find("scope"), R"(the scope is either "Namespaced" or "Cluster")");
    crd.namespaced = scope == "Namespaced";
    const YamlNode* versions = spec.find("versions");
    if (versions == nullptr || versions->items.empty()) fail(&spec, R"(needs "versions")");
    const std::string crd_name = std::exchange(where_, crd.plural + "." + crd.group);
    for (const YamlNode* version : versions->items) {
      if (!is_map(version)) fail(version, "a version that is not an object");
      if (is_plain_true(version->find("served"))) crd.versions.push_back(read_version(*version));
    }
    where_ = crd_name;
    if (crd.versions.empty())
      fail(versions, "serves no version: set \"served: true\" in one of \"versions\"");
    crds_.push_back(std::move(crd));
  }

  CrdVersion read_version(const YamlNode& node) {
    const std::string outer = where_;
    CrdVersion out;
    out.name = text_at(node, "name");
    where_ += " " + out.name;
    if (is_plain_true(node.find("deprecated")))
      out.deprecated = std::string(text_of(node.find("deprecationWarning")));
    if (const YamlNode* subresources = node.find("subresources"); is_map(subresources)) {
      out.has_status = subresources->find("status") != nullptr;
      out.has_scale = subresources->find("scale") != nullptr;
    }
    const YamlNode* schema = node.find("schema");
    const YamlNode* root = is_map(schema) ? schema->find("openAPIV3Schema") : nullptr;
    if (is_map(root)) {
      out.description = text_of(root->find("description"));
      path_.clear();
      const YamlNode* properties = root->find("properties");
      if (properties != nullptr && properties->kind != YamlNode::Kind::kNull) {
        for (CrdField& field : read_structure(*root, 0).fields) {
          if (field.name != "apiVersion" && field.name != "kind" && field.name != "metadata")
            out.fields.push_back(std::move(field));
        }
      }
    }
    where_ = outer;
    return out;
  }

  [[noreturn]] void fail_at_path(const YamlNode& node, const std::string& message) const {
    fail(&node, fmt::format("{}: {}", path_.empty() ? "." : path_, message));
  }

  static CrdType scalar(std::string name) {
    return CrdType::of(CrdType::Kind::kScalar, std::move(name));
  }

  CrdType read_type(const YamlNode& schema, int depth) {
    if (schema.kind != YamlNode::Kind::kMap) fail_at_path(schema, "a schema that is not an object");
    if (depth > kMaxDepth) fail_at_path(schema, fmt::format("nested over {} deep", kMaxDepth));
    if (schema.find("$ref") != nullptr) {
      fail_at_path(
          schema,
          "\"$ref\" is not allowed in the schema of a CRD: insert the schema that it refers to");
    }
    const std::string_view format = text_of(schema.find("format"));
    if (is_plain_true(schema.find("x-kubernetes-int-or-string"))) {
      if (is_quantity_pattern(text_of(schema.find("pattern"))))
        return CrdType::of(CrdType::Kind::kQuantity, "string");
      return scalar("string:int-or-string");
    }
    std::string_view type = text_of(schema.find("type"));
    if (type.empty() && is_map(schema.find("properties"))) type = "object";
    if (type.empty() && is_map(schema.find("items"))) type = "array";
    if (type.empty()) return scalar("any");
    if (type == "boolean") return scalar("boolean");
    if (type == "number") return scalar("number:double");
    if (type == "integer") {
      CrdType out = scalar(format == "int32" ? "integer:int32" : "integer:int64");
      read_values(schema, out);
      return out;
    }
    if (type == "string") {
      if (format == "date-time") return scalar("string:date-time");
      if (format == "byte") return scalar("string:byte");
      if (format == "quantity" || is_quantity_pattern(text_of(schema.find("pattern"))))
        return CrdType::of(CrdType::Kind::kQuantity, "string");
      CrdType out = scalar("string");
      read_values(schema, out);
      return out;
    }
    if (type == "array") return read_list(schema, depth);
    if (type == "object") return read_object(schema, depth);
    fail_at_path(schema, fmt::format("the unknown type \"{}\"; there are array, boolean, integer, "
                                     "number, object and string",
                                     type));
  }

  static void read_values(const YamlNode& schema, CrdType& out) {
    const YamlNode* values = schema.find("enum");
    if (values == nullptr) return;
    for (const YamlNode* value : values->items) {
      if (value->kind != YamlNode::Kind::kScalar) continue;
      if (out.name == "string") {
        if (std::ranges::find(out.values, decltype(out.values)::value_type(value->text)) ==
            out.values.end()) {
          out.values.emplace_back(value->text);
        }
        continue;
      }
      std::int64_t number = 0;
      const char* end = value->text.data() + value->text.size();
      const auto [read, error] = std::from_chars(value->text.data(), end, number);
      const bool fits = out.name != "integer:int32" || std::in_range<std::int32_t>(number);
      if (error == std::errc() && read == end && fits) {
        if (std::ranges::find(out.values, decltype(out.values)::value_type(number)) ==
            out.values.end()) {
          out.values.emplace_back(number);
        }
      }
    }
  }

  CrdType read_list(const YamlNode& schema, int depth) {
    CrdType out = CrdType::of(CrdType::Kind::kList);
    const YamlNode* items = schema.find("items");
    if (items == nullptr) {
      out.element.push_back(scalar("any"));
      return out;
    }
    const std::size_t length = path_.size();
    path_ += "[]";
    out.element.push_back(read_type(*items, depth + 1));
    path_.resize(length);
    out.list_type = text_of(schema.find("x-kubernetes-list-type"));
    out.list_map_keys = texts_of(schema.find("x-kubernetes-list-map-keys"));
    if (out.list_type == "map") {
      if (out.list_map_keys.empty())
        fail_at_path(schema, "a list of the type \"map\" needs \"x-kubernetes-list-map-keys\"");
      const CrdType& element = out.element.front();
      for (const std::string& key : out.list_map_keys) {
        if (element.kind == CrdType::Kind::kBuiltin) continue;
        if (find_field(element, key) == nullptr) {
          fail_at_path(
              schema,
              fmt::format("the key \"{}\" of the list is not a field of its elements", key));
        }
      }
    }
    return out;
  }

  CrdType read_object(const YamlNode& schema, int depth) {
    if (is_map(schema.find("properties"))) {
      CrdType out = read_structure(schema, depth);
      if (!out.preserves_unknown && is_condition(out))
        return CrdType::of(CrdType::Kind::kBuiltin, std::string(kMeta) + "Condition");
      if (!out.preserves_unknown && is_label_selector(out))
        return CrdType::of(CrdType::Kind::kBuiltin, std::string(kMeta) + "LabelSelector");
      return out;
    }
    const YamlNode* additional = schema.find("additionalProperties");
    if (!is_map(additional)) return scalar("any");
    CrdType out = CrdType::of(CrdType::Kind::kMap);
    const std::size_t length = path_.size();
    path_ += "{}";
    out.element.push_back(read_type(*additional, depth + 1));
    path_.resize(length);
    return out;
  }

  CrdType read_structure(const YamlNode& schema, int depth) {
    CrdType out = CrdType::of(CrdType::Kind::kStructure);
    const YamlNode& properties = *schema.find("properties");
    if (properties.kind != YamlNode::Kind::kMap)
      fail_at_path(properties, "\"properties\" that are not an object");
    out.preserves_unknown = is_plain_true(schema.find("x-kubernetes-preserve-unknown-fields"));
    const std::vector<std::string> required = texts_of(schema.find("required"));
    if (is_plain_true(schema.find("x-kubernetes-embedded-resource"))) add_type_meta(out);
    std::set<std::string_view> seen;
    for (const auto& [name, property] : properties.fields) {
      if (name.find('\0') != std::string::npos)
        fail_at_path(*property, "the name of a field holds a NUL");
      if (!seen.insert(name).second)
        fail_at_path(*property, fmt::format("the field \"{}\" occurs twice", name));
      const std::size_t length = path_.size();
      path_ += "." + name;
      CrdField field;
      field.name = name;
      field.type = read_type(*property, depth + 1);
      field.description = text_of(property->find("description"));
      if (const YamlNode* value = property->find("default")) field.default_json = to_json(*value);
      field.required = std::ranges::find(required, name) != required.end();
      field.nullable = is_plain_true(property->find("nullable"));
      path_.resize(length);
      // Every object has these members, with more detail than in the schema.
      const bool implied = find_field(out, name) != nullptr;
      if (!implied) out.fields.push_back(std::move(field));
    }
    return out;
  }

  /// Embedded objects have these fields even if the schema does not list them.
  static void add_type_meta(CrdType& out) {
    const auto add = [&](const char* name, CrdType type, bool required) {
      CrdField& field = out.fields.emplace_back();
      field.name = name;
      field.type = std::move(type);
      field.required = required;
    };
    add("apiVersion", scalar("string"), true);
    add("kind", scalar("string"), true);
    add("metadata", CrdType::of(CrdType::Kind::kBuiltin, std::string(kMeta) + "ObjectMeta"), false);
  }

  std::string file_;
  int line_offset_ = 0;
  std::string where_;
  std::string path_;
  std::vector<Crd> crds_;
};

}  // namespace

std::vector<Crd> read_crds(std::string_view text, std::string_view file) {
  return Reader(file).read(text);
}

}  // namespace lookout::codegen
