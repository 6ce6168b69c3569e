#include "cmd/manifests.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <string_view>
#include <system_error>
#include <utility>

#include "lookout/api/detail/go_values.h"
#include "lookout/base/error.h"
#include "lookout/base/yaml_tree.h"

namespace lookout::cmd {
namespace {

/// A file with more is no manifest.
constexpr std::size_t kMaxBytes = 64u << 20;

std::string read_all(std::istream& in, const std::string& name) {
  std::string out;
  std::array<char, 1 << 16> buffer{};
  while (in.read(buffer.data(), buffer.size()), in.gcount() > 0) {
    out.append(buffer.data(), static_cast<std::size_t>(in.gcount()));
    if (out.size() > kMaxBytes) {
      throw Error(fmt::format("{} has more than {} MB", name, kMaxBytes >> 20));
    }
  }
  if (in.bad()) throw Error(fmt::format("{} cannot be read: {}", name, std::strerror(errno)));
  return out;
}

std::string read_file(const std::string& name) {
  std::ifstream in(name, std::ios::binary);
  if (!in) throw Error(fmt::format("{} cannot be read: {}", name, std::strerror(errno)));
  return read_all(in, name);
}

/// Also a link that leads nowhere: to read it is an error that names it.
bool is_file(const std::filesystem::directory_entry& entry) {
  std::error_code error;
  return entry.is_regular_file(error) || (entry.is_symlink(error) && !entry.exists(error));
}

/// The files that are meant by a name. Throws Error if there are none.
std::vector<std::string> files_of(const std::string& name) {
  if (name == "-") return {name};
  std::error_code error;
  const auto type = std::filesystem::status(name, error).type();
  if (type == std::filesystem::file_type::not_found)
    throw Error(fmt::format("{} cannot be read: {}", name, error.message()));
  if (type != std::filesystem::file_type::directory) return {name};
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(name)) {
    const auto extension = entry.path().extension();
    if (is_file(entry) && (extension == ".yaml" || extension == ".yml" || extension == ".json"))
      out.push_back(entry.path().string());
  }
  if (out.empty()) {
    throw Error(fmt::format("{} has no files with the extension .yaml, .yml or .json", name));
  }
  std::sort(out.begin(), out.end());
  return out;
}

std::string_view text_of(const YamlNode& node, std::string_view field) {
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

/// YAML takes 123 and yes for something else than text.
std::string why_no_identity(const api::Object& object) {
  const std::pair<std::string_view, api::Value> fields[] = {
      {"apiVersion", object["apiVersion"]},
      {"kind", object["kind"]},
      {"metadata.name", object["metadata"]["name"]},
      {"metadata.namespace", object["metadata"]["namespace"]}};
  for (const auto& [name, value] : fields) {
    if (!value.exists() || value.is_null() || value.is_string()) continue;
    return fmt::format("{} must be a string, but is of type {}: quote it", name,
                       api::detail::go_json_name(value));
  }
  return {};
}

/// Reads one file.
class FileReader {
 public:
  FileReader(std::string shown, Manifests& out) : shown_(std::move(shown)), out_(out) {}

  /// Stops at a document that is not YAML: behind it, nothing is certain.
  void read(std::string_view text) {
    for (const YamlDocument& document : split_yaml_documents(text)) {
      first_line_ = document.first_line;
      try {
        const YamlTree tree(document, manifest_limits());
        add(tree.root());
      } catch (const YamlError& e) {
        fail(e.line(), e.what());
        return;
      }
    }
  }

 private:
  std::string place(int line) const {
    return fmt::format("{}:{}", shown_, first_line_ - 1 + std::max(line, 1));
  }
  void fail(int line, std::string_view why) {
    out_.errors.push_back(fmt::format("{}: {}", place(line), why));
  }

  /// Adds the object of a document, or those of a list.
  void add(const YamlNode& node) {
    if (node.kind == YamlNode::Kind::kNull) return;  // nothing but comments
    if (node.kind != YamlNode::Kind::kMap) return fail(node.line, "this is not an object");
    const std::string_view kind = text_of(node, "kind");
    const YamlNode* const items = node.find("items");
    if (items != nullptr && kind.ends_with("List") && items->kind == YamlNode::Kind::kSequence) {
      for (const YamlNode* item : items->items) add_item(*item, kind, text_of(node, "apiVersion"));
      return;
    }
    if (kind.empty() || text_of(node, "apiVersion").empty())
      return fail(node.line, "the object needs apiVersion and kind");
    add_object(node);
  }

  /// The items of a PodList need not say that they are Pods: servers do not.
  void add_item(const YamlNode& node, std::string_view list_kind, std::string_view api_version) {
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

  void add_object(const YamlNode& node) {
    try {
      Manifest manifest{api::Object::parse(to_json(node)), place(node.line)};
      if (const auto why = why_no_identity(manifest.object); !why.empty())
        return fail(node.line, why);
      if (manifest.object.name().empty()) return fail(node.line, "the object needs metadata.name");
      out_.objects.push_back(std::move(manifest));
    } catch (const Error& e) {
      fail(node.line, e.what());
    }
  }

  static constexpr std::string_view kList = "List";

  const std::string shown_;
  Manifests& out_;
  int first_line_ = 1;
};

}  // namespace

Manifests read_manifests(const std::vector<std::string>& files) {
  std::vector<std::string> names;
  for (const std::string& given : files) {
    for (std::string& name : files_of(given)) names.push_back(std::move(name));
  }
  Manifests out;
  for (const std::string& name : names) {
    const bool standard_input = name == "-";
    const std::string shown = standard_input ? "standard input" : name;
    try {
      FileReader(shown, out).read(standard_input ? read_all(std::cin, shown) : read_file(name));
    } catch (const Error& e) {
      out.errors.emplace_back(e.what());
    }
  }
  if (out.objects.empty() && out.errors.empty())
    throw Error("there is no object in what was given");
  return out;
}

}  // namespace lookout::cmd
