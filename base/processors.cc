#include "lookout/base/processors.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <optional>
#include <sstream>
#include <string_view>
#include <thread>
#include <vector>

#include "lookout/base/numbers.h"

namespace lookout {
namespace {

std::vector<std::string> lines_of(const std::string& path) {
  std::vector<std::string> out;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) out.push_back(std::move(line));
  return out;
}

std::vector<std::string> words_of(const std::string& line) {
  std::vector<std::string> out;
  std::istringstream words(line);
  for (std::string word; words >> word;) out.push_back(std::move(word));
  return out;
}

std::optional<double> number(std::string_view text) {
  const auto value = base::parse_number<std::int64_t>(text);
  if (!value || *value <= 0) return std::nullopt;
  return static_cast<double>(*value);
}

std::optional<double> number_in(const std::string& path) {
  const auto lines = lines_of(path);
  return lines.empty() ? std::nullopt : number(lines.front());
}

/// Whether a list such as "a,b,c" contains `wanted`.
bool has(std::string_view list, std::string_view wanted) {
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    if (list.substr(0, comma) == wanted) return true;
    list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
  }
  return false;
}

/// A mounted cgroup hierarchy, and this process's group in it.
struct Hierarchy {
  bool v2 = false;
  std::string mounted;  // the mount point
  std::string group;    // relative to `mounted`: "" or "/..."
};

/// The hierarchies with the CPU controller, and the process's group in each (proc(5), cgroups(7)).
std::vector<Hierarchy> hierarchies(const std::string& root) {
  std::optional<std::string> v1;
  std::optional<std::string> v2;
  for (const std::string& line : lines_of(root + "/proc/self/cgroup")) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string_view controllers =
        std::string_view(line).substr(first + 1, second - first - 1);
    if (controllers.empty()) v2 = line.substr(second + 1);
    if (has(controllers, "cpu")) v1 = line.substr(second + 1);
  }
  std::vector<Hierarchy> out;
  for (const std::string& line : lines_of(root + "/proc/self/mountinfo")) {
    // 36 35 98:0 /root /mounted options ... - type source options
    const std::vector<std::string> words = words_of(line);
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (words.size() < 5 || words.end() - dash < 4) continue;
    const bool is_v2 = dash[1] == "cgroup2";
    const std::optional<std::string>& group = is_v2 ? v2 : v1;
    if (!group || (!is_v2 && (dash[1] != "cgroup" || !has(dash[3], "cpu")))) continue;
    // A container may see only a part of the hierarchy, or its own group as the root.
    std::string below = *group;
    const std::string& top = words[3];
    if (top != "/" && below.starts_with(top)) below.erase(0, top.size());
    if (below == "/" || below.starts_with("/..")) below.clear();
    out.push_back({is_v2, root + words[4], below});
  }
  return out;
}

/// The CPU limit in processors; nullopt if there is none.
std::optional<double> quota_of(bool v2, const std::string& group) {
  if (!v2) {
    const auto quota = number_in(group + "/cpu.cfs_quota_us");
    const auto period = number_in(group + "/cpu.cfs_period_us");
    return quota && period ? std::optional(*quota / *period) : std::nullopt;
  }
  const auto lines = lines_of(group + "/cpu.max");
  const auto words = lines.empty() ? std::vector<std::string>() : words_of(lines.front());
  if (words.size() != 2) return std::nullopt;
  const auto quota = number(words[0]);
  const auto period = number(words[1]);
  return quota && period ? std::optional(*quota / *period) : std::nullopt;
}

}  // namespace

unsigned usable_processors(const std::string& root) {
  unsigned out = std::max(1u, std::thread::hardware_concurrency());
  for (Hierarchy hierarchy : hierarchies(root)) {
    // The limits of all parent groups apply, too.
    for (;;) {
      if (const auto quota = quota_of(hierarchy.v2, hierarchy.mounted + hierarchy.group)) {
        if (const double whole = std::ceil(*quota); whole < out) out = static_cast<unsigned>(whole);
      }
      if (hierarchy.group.empty()) break;
      hierarchy.group.erase(hierarchy.group.rfind('/'));
    }
  }
  return std::max(1u, out);
}

}  // namespace lookout
