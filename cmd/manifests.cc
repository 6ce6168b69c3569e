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

std::vector<std::string> files_of(const std::string& name) {
  if (name == "-" || !std::filesystem::is_directory(name)) return {name};
  std::vector<std::string> out;
  for (const auto& entry : std::filesystem::directory_iterator(name)) {
    const auto extension = entry.path().extension();
    if (entry.is_regular_file() &&
        (extension == ".yaml" || extension == ".yml" || extension == ".json"))
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

/// Adds the object of a document, or those of a list. `first_line`: that of the document.
void add(const YamlNode& node, const std::string& file, int first_line,
         std::vector<Manifest>& out) {
  if (node.kind == YamlNode::Kind::kNull) return;  // nothing but comments
  const std::string place = fmt::format("{}:{}", file, first_line - 1 + std::max(node.line, 1));
  if (node.kind != YamlNode::Kind::kMap) throw Error(place + ": this is not an object");
  const std::string_view kind = text_of(node, "kind");
  if (const YamlNode* const items = node.find("items");
      items != nullptr && kind.ends_with("List") && items->kind == YamlNode::Kind::kSequence) {
    for (const YamlNode* item : items->items) add(*item, file, first_line, out);
    return;
  }
  if (kind.empty() || text_of(node, "apiVersion").empty())
    throw Error(place + ": the object needs apiVersion and kind");
  try {
    out.push_back({api::Object::parse(to_json(node)), place});
  } catch (const Error& e) {
    throw Error(fmt::format("{}: {}", place, e.what()));
  }
  if (out.back().object.name().empty()) throw Error(place + ": the object needs metadata.name");
}

}  // namespace

std::vector<Manifest> read_manifests(const std::vector<std::string>& files) {
  std::vector<Manifest> out;
  for (const std::string& given : files) {
    for (const std::string& name : files_of(given)) {
      const bool standard_input = name == "-";
      const std::string shown = standard_input ? "standard input" : name;
      const std::string text = standard_input ? read_all(std::cin, shown) : read_file(name);
      for (const YamlDocument& document : split_yaml_documents(text)) {
        try {
          const YamlTree tree(document.text, manifest_limits());
          add(tree.root(), shown, document.first_line, out);
        } catch (const YamlError& e) {
          throw Error(fmt::format("{}:{}: {}", shown,
                                  document.first_line - 1 + std::max(e.line(), 1), e.what()));
        }
      }
    }
  }
  if (out.empty()) throw Error("there is no object in what was given");
  return out;
}

}  // namespace lookout::cmd
