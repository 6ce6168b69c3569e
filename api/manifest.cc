#include "lookout/api/manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "lookout/base/yaml_tree.h"

namespace lookout::api {
namespace {

constexpr std::string_view kList = "List";

std::string_view field_text(const YamlNode& node, std::string_view field) {
  const YamlNode* const found = node.find(field);
  return found == nullptr ? std::string_view() : std::string_view(found->text);
}

YamlNode text_node(std::string_view text) {
  YamlNode out;
  out.kind = YamlNode::Kind::kScalar;
  out.quoted = true;
  out.text = text;
  return out;
}

/// Reads one document.
class DocumentReader {
 public:
  DocumentReader(int first_line, const ManifestHandler& handler)
      : first_line_(first_line), handler_(handler) {}

  /// Adds the object, or those of a list.
  void add(const YamlNode& node) const {
    if (node.kind == YamlNode::Kind::kNull) return;  // nothing but comments
    if (node.kind != YamlNode::Kind::kMap) return fail("this is not an object", node.line);
    const std::string_view kind = field_text(node, "kind");
    const YamlNode* const items = node.find("items");
    if (items != nullptr && kind.ends_with(kList) && items->kind == YamlNode::Kind::kSequence) {
      for (const YamlNode* item : items->items)
        add_item(*item, kind, field_text(node, "apiVersion"));
      return;
    }
    if (kind.empty() || field_text(node, "apiVersion").empty())
      return fail("the object needs apiVersion and kind", node.line);
    add_object(node);
  }

  void fail(const std::string& why, int line) const { handler_.on_error(why, place(line)); }

 private:
  int place(int line) const { return first_line_ - 1 + std::max(line, 1); }

  /// The items of a PodList need not say that they are Pods: servers do not.
  void add_item(const YamlNode& node, std::string_view list_kind,
                std::string_view api_version) const {
    const std::string_view kind = list_kind.substr(0, list_kind.size() - kList.size());
    if (node.kind != YamlNode::Kind::kMap || kind.empty() || node.find("kind") != nullptr ||
        node.find("apiVersion") != nullptr)
      return add(node);
    const YamlNode its_kind = text_node(kind);
    const YamlNode its_version = text_node(api_version);
    YamlNode item = node;
    item.fields.emplace_back("kind", &its_kind);
    item.fields.emplace_back("apiVersion", &its_version);
    add(item);
  }

  void add_object(const YamlNode& node) const {
    Object object;
    try {
      object = Object::parse(to_json(node));
    } catch (const Error& e) {
      return fail(e.what(), node.line);
    }
    handler_.on_object(std::move(object), place(node.line));
  }

  const int first_line_;
  const ManifestHandler& handler_;
};

}  // namespace

void read_manifests(std::string_view text, const ManifestHandler& handler) {
  for (const YamlDocument& document : split_yaml_documents(text)) {
    const DocumentReader reader(document.first_line, handler);
    std::optional<YamlTree> tree;
    try {
      tree.emplace(document, manifest_limits());
    } catch (const YamlError& e) {
      return reader.fail(e.what(), e.line());
    }
    reader.add(tree->root());
  }
}

std::vector<Object> parse_manifests(std::string_view text) {
  std::vector<Object> out;
  read_manifests(text, {[&](Object object, int) { out.push_back(std::move(object)); },
                        [](const std::string& why, int line) {
                          throw DecodeError(fmt::format("line {}: {}", line, why));
                        }});
  return out;
}

}  // namespace lookout::api
