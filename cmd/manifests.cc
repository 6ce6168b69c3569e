#include "cmd/manifests.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
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

#include "cmd/object_name.h"
#include "lookout/api/detail/go_values.h"
#include "lookout/api/manifest.h"
#include "lookout/base/error.h"

namespace lookout::cmd {
namespace {

/// The maximum size of a manifest.
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

/// Also true for a dangling link: reading it then gives an error with its name.
bool is_file(const std::filesystem::directory_entry& entry) {
  std::error_code error;
  return entry.is_regular_file(error) || (entry.is_symlink(error) && !entry.exists(error));
}

bool is_manifest(const std::filesystem::directory_entry& entry) {
  const auto extension = entry.path().extension();
  return is_file(entry) && (extension == ".yaml" || extension == ".yml" || extension == ".json");
}

/// The files that a name refers to. Throws Error if there are none.
std::vector<std::string> files_of(const std::string& name, bool recursive) {
  if (name == "-") return {name};
  if (name.starts_with("http://") || name.starts_with("https://")) {
    throw Error(
        fmt::format("{} is not a file: pass its content, as in curl -fsSL {} | lookout apply -f -",
                    name, name));
  }
  std::error_code error;
  const auto type = std::filesystem::status(name, error).type();
  if (type == std::filesystem::file_type::not_found)
    throw Error(fmt::format("{} cannot be read: {}", name, error.message()));
  if (type != std::filesystem::file_type::directory) return {name};
  std::vector<std::filesystem::path> found;
  const auto add = [&](const std::filesystem::directory_entry& entry) {
    if (is_manifest(entry)) found.push_back(entry.path());
  };
  if (recursive) {
    for (const auto& entry : std::filesystem::recursive_directory_iterator(name)) add(entry);
  } else {
    for (const auto& entry : std::filesystem::directory_iterator(name)) add(entry);
  }
  if (found.empty()) {
    throw Error(fmt::format("{} has no files with the extension .yaml, .yml or .json{}", name,
                            recursive ? "" : " (-R also reads the folders within it)"));
  }
  // The order of paths, not of their texts: all of a/ comes before a.yaml.
  std::ranges::sort(found);
  std::vector<std::string> out;
  for (const auto& path : found) out.push_back(path.string());
  return out;
}

/// YAML reads 123 and yes as other types than text.
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

/// Reads the text of one file.
void read(std::string_view text, const std::string& shown, Manifests& out) {
  const auto place = [&](int line) { return fmt::format("{}:{}", shown, line); };
  const auto fail = [&](std::string_view why, int line) {
    out.errors.push_back(fmt::format("{}: {}", place(line), why));
  };
  api::read_manifests(text, {[&](const api::Object& object, int line) {
                               if (const auto why = why_no_identity(object); !why.empty())
                                 return fail(why, line);
                               if (object.name().empty())
                                 return fail("the object needs metadata.name", line);
                               out.objects.push_back({object, place(line)});
                             },
                             fail});
}

}  // namespace

CLI::Option* FileFlags::add_to(CLI::App& app, const std::string& description) {
  app.add_flag("-R,--recursive", recursive, "Also read the folders within the folders of -f");
  return app.add_option("-f,--filename", names, description)->type_name("FILE");
}

Manifests read_manifests(const FileFlags& files) {
  std::vector<std::string> names;
  for (const std::string& given : files.names) {
    for (std::string& name : files_of(given, files.recursive)) names.push_back(std::move(name));
  }
  Manifests out;
  for (const std::string& name : names) {
    const bool standard_input = name == "-";
    const std::string shown = standard_input ? "standard input" : name;
    try {
      read(standard_input ? read_all(std::cin, shown) : read_file(name), shown, out);
    } catch (const Error& e) {
      out.errors.emplace_back(e.what());
    }
  }
  if (out.objects.empty() && out.errors.empty()) throw Error("the input contains no object");
  return out;
}

std::string namespace_of(const api::Object& object, const api::Resource& resource,
                         const std::string& ns, const rest::Client& client) {
  if (!resource.namespaced) return {};
  if (!ns.empty() && !object.ns().empty() && object.ns() != ns) {
    throw Error(fmt::format("the namespace of {} is {}, but -n says {}",
                            name_of(resource, object.name()), object.ns(), ns));
  }
  if (!ns.empty()) return ns;
  return object.ns().empty() ? client.config().default_namespace : std::string(object.ns());
}

}  // namespace lookout::cmd
