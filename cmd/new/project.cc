#include "cmd/new/project.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>
#include <utility>

#include "api/codegen/crd_names.h"
#include "lookout/api/error.h"
#include "lookout/base/ascii.h"
#include "lookout/version.h"

namespace lookout::cmd {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMaxLabel = 63;
constexpr std::size_t kMaxSubdomain = 253;
// "-leader-election" is the longest suffix that the templates append to the name.
constexpr std::size_t kMaxName = kMaxLabel - std::string_view("-leader-election").size();

bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }
using base::is_digit;

/// RFC 1123: what Kubernetes calls a DNS label.
bool is_label(std::string_view text) {
  const auto is_inner = [](char c) { return is_lower(c) || is_digit(c) || c == '-'; };
  return !text.empty() && text.size() <= kMaxLabel && std::ranges::all_of(text, is_inner) &&
         text.front() != '-' && text.back() != '-';
}

bool is_subdomain(std::string_view text) {
  if (text.size() > kMaxSubdomain) return false;
  for (;;) {
    const std::size_t dot = text.find('.');
    if (!is_label(text.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    text.remove_prefix(dot + 1);
  }
}

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](unsigned char c) { return std::tolower(c); });
  return out;
}

/// "my-site" -> "MySite".
std::string kind_of(std::string_view name) {
  std::string out;
  out.reserve(name.size());
  bool begins = true;
  for (const char c : name) {
    if (c != '-')
      out.push_back(begins ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c);
    begins = c == '-';
  }
  return out;
}

/// "MySite" -> "my_site", "HTTPRoute" -> "http_route".
std::string snake(std::string_view kind) {
  std::string out;
  out.reserve(kind.size() + 4);
  for (std::size_t i = 0; i < kind.size(); ++i) {
    const bool after_lower = i > 0 && !is_upper(kind[i - 1]);
    const bool before_lower = i > 0 && i + 1 < kind.size() && is_lower(kind[i + 1]);
    if (is_upper(kind[i]) && (after_lower || before_lower)) out.push_back('_');
    out.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(kind[i]))));
  }
  return out;
}

/// The plural of regular English words, as in kubectl and kubebuilder.
std::string plural_of(const std::string& singular) {
  const auto ends = [&](std::string_view end) { return singular.ends_with(end); };
  if (ends("s") || ends("x") || ends("z") || ends("ch") || ends("sh")) return singular + "es";
  constexpr std::string_view kVowels = "aeiou";
  if (ends("y") && singular.size() > 1 &&
      kVowels.find(singular[singular.size() - 2]) == std::string_view::npos) {
    return singular.substr(0, singular.size() - 1) + "ies";
  }
  return singular + "s";
}

/// Must differ from the nested namespace of the version.
std::string cpp_namespace_of(const std::string& name) {
  const std::string out = codegen::namespace_name(name);
  return out == "v1" ? out + "_" : out;
}

void write_text(const fs::path& path, const std::string& text) {
  std::error_code error;
  fs::create_directories(path.parent_path(), error);
  if (error)
    throw Error(fmt::format("cannot make {}: {}", path.parent_path().string(), error.message()));
  std::ofstream file(path, std::ios::binary);
  file << text;
  file.close();
  if (!file) throw Error(fmt::format("cannot write {}: {}", path.string(), std::strerror(errno)));
}

}  // namespace

ProjectNames project_names(std::string name, std::string kind, std::string group) {
  if (!is_label(name) || !is_lower(name.front()) || name.size() > kMaxName) {
    throw InvalidArgument(fmt::format(
        "\"{}\" is not a valid name for a project: up to {} lower-case letters, digits and '-', "
        "with a letter first and no '-' last, such as my-site",
        name, kMaxName));
  }
  if (kind.empty()) kind = kind_of(name);
  const auto is_inner = [](char c) { return is_lower(c) || is_upper(c) || is_digit(c); };
  if (!is_upper(kind.front()) || kind.size() > kMaxLabel || !std::ranges::all_of(kind, is_inner)) {
    throw InvalidArgument(fmt::format(
        "\"{}\" is not a valid kind: up to {} letters and digits in CamelCase, such as MySite",
        kind, kMaxLabel));
  }
  if (group.empty()) group = "example.com";
  if (!is_subdomain(group) || group.find('.') == std::string::npos) {
    throw InvalidArgument(fmt::format(
        "\"{}\" is no API group: a domain in lower case with a dot in it, such as example.com",
        group));
  }
  for (const std::string_view reserved : {"k8s.io", "kubernetes.io"}) {
    if (group == reserved || group.ends_with(fmt::format(".{}", reserved))) {
      throw InvalidArgument(
          fmt::format("{}: groups in {} are reserved for the Kubernetes project", group, reserved));
    }
  }
  ProjectNames out;
  out.file = snake(kind);
  out.plural = plural_of(lower(kind));
  if (out.plural.size() > kMaxLabel)
    throw InvalidArgument(fmt::format("\"{}\" is too long for a kind", kind));
  out.cpp_namespace = cpp_namespace_of(name);
  out.name = std::move(name);
  out.kind = std::move(kind);
  out.group = std::move(group);
  return out;
}

std::string fill_in(std::string_view text, const ProjectNames& names) {
  const std::array<std::pair<std::string_view, std::string>, 8> words = {{
      {"name", names.name},
      {"group", names.group},
      {"Kind", names.kind},
      {"kind", lower(names.kind)},
      {"kinds", names.plural},
      {"file", names.file},
      {"ns", names.cpp_namespace},
      {"version", std::string(kVersion)},
  }};
  std::string out;
  out.reserve(text.size());
  for (;;) {
    const std::size_t begin = text.find("{{");
    out.append(text.substr(0, begin));
    if (begin == std::string_view::npos) return out;
    text.remove_prefix(begin);
    const auto word = std::ranges::find_if(words, [&](const auto& each) {
      return text.substr(2).starts_with(fmt::format("{}}}}}", each.first));
    });
    if (word == words.end()) {
      out.append("{{");
      text.remove_prefix(2);
    } else {
      out.append(word->second);
      text.remove_prefix(word->first.size() + 4);
    }
  }
}

std::vector<fs::path> write_project(const fs::path& folder, const ProjectNames& names) {
  std::error_code error;
  const bool existed = fs::exists(folder, error);
  if (existed && !(fs::is_directory(folder, error) && fs::is_empty(folder, error)))
    throw Error(fmt::format("{} already exists: nothing was written", folder.string()));
  std::vector<fs::path> written;
  written.reserve(project_templates().size());
  try {
    for (const ProjectTemplate& each : project_templates()) {
      const fs::path relative = fill_in(each.path, names);
      write_text(folder / relative, fill_in(each.text, names));
      written.push_back(relative);
    }
  } catch (const Error&) {
    // Restore the folder, so that another attempt can succeed.
    if (existed) {
      for (const auto& entry : fs::directory_iterator(folder, error))
        fs::remove_all(entry.path(), error);
    } else {
      fs::remove_all(folder, error);
    }
    throw;
  }
  return written;
}

}  // namespace lookout::cmd
