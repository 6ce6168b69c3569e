#include "apiserver/bootstrap/policy.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <utility>

#include "apiserver/json.h"
#include "lookout/api/error.h"
#include "lookout/base/ascii.h"

namespace lookout::apiserver::bootstrap {
namespace {

using json::Allocator;
using json::Value;
using Words = std::vector<std::string>;

constexpr const char* kRbac = "rbac.authorization.k8s.io";

Words split(std::string_view list, char separator) {
  const auto parts = base::split(list, separator);
  return {parts.begin(), parts.end()};
}

Words words_of(const std::string& line) {
  std::istringstream in(line);
  Words words;
  for (std::string word; in >> word;) words.push_back(word);
  return words;
}

Words verbs_of(const std::string& list) {
  Words out;
  for (const std::string& verb : split(list, ',')) {
    if (verb == "read") {
      out.insert(out.end(), {"get", "list", "watch"});
    } else if (verb == "write") {
      out.insert(out.end(), {"create", "delete", "deletecollection", "patch", "update"});
    } else {
      out.push_back(verb);
    }
  }
  std::sort(out.begin(), out.end());
  return out;
}

Words groups_of(const std::string& list) {
  Words out = split(list, ',');
  std::replace(out.begin(), out.end(), std::string("core"), std::string());
  return out;
}

std::string aggregation_label(const std::string& role) {
  return fmt::format("rbac.authorization.k8s.io/aggregate-to-{}", role);
}

/// An object whose lines are being read.
class Draft {
 public:
  Draft(std::string kind, std::string plural, std::string ns, const std::string& name)
      : plural_(std::move(plural)) {
    json::set(document_, "apiVersion", fmt::format("{}/v1", kRbac), allocator());
    json::set(document_, "kind", kind, allocator());
    Value& metadata = json::child(document_, "metadata", allocator());
    json::set(metadata, "name", name, allocator());
    if (!ns.empty()) json::set(metadata, "namespace", ns, allocator());
    json::set(json::child(metadata, "labels", allocator()), "kubernetes.io/bootstrapping",
              "rbac-defaults", allocator());
    json::set(json::child(metadata, "annotations", allocator()),
              "rbac.authorization.kubernetes.io/autoupdate", "true", allocator());
  }

  void bind(std::string_view kind, const std::string& role) {
    Value& reference = json::child(document_, "roleRef", allocator());
    json::set(reference, "apiGroup", kRbac, allocator());
    json::set(reference, "kind", kind, allocator());
    json::set(reference, "name", role, allocator());
  }

  bool add_subject(const std::string& kind, const std::string& name) {
    Value subject(rapidjson::kObjectType);
    json::set(subject, "kind", kind, allocator());
    if (kind == "ServiceAccount") {
      const Words parts = split(name, '/');
      if (parts.size() != 2) return false;
      json::set(subject, "namespace", parts[0], allocator());
      json::set(subject, "name", parts[1], allocator());
    } else {
      json::set(subject, "apiGroup", kRbac, allocator());
      json::set(subject, "name", name, allocator());
    }
    list("subjects").PushBack(subject, allocator());
    return kind == "ServiceAccount" || kind == "User" || kind == "Group";
  }

  /// An indented line; false if it is malformed.
  bool add(const Words& words) {
    if (words.size() < 2 || json::find(document_, "roleRef") != nullptr) return false;
    if (words[0] == "into") {
      Value& labels = json::child(*json::find(document_, "metadata"), "labels", allocator());
      json::set(labels, aggregation_label(words[1]), "true", allocator());
      return words.size() == 2;
    }
    if (words[0] == "aggregates") {
      Value selector(rapidjson::kObjectType);
      json::set(json::child(selector, "matchLabels", allocator()), aggregation_label(words[1]),
                "true", allocator());
      Value selectors(rapidjson::kArrayType);
      selectors.PushBack(selector, allocator());
      json::set(json::child(document_, "aggregationRule", allocator()), "clusterRoleSelectors",
                std::move(selectors), allocator());
      return words.size() == 2;
    }
    return add_rule(words);
  }

  Entry entry() const { return {kRbac, plural_, api::Object::from(document_)}; }

 private:
  bool add_rule(const Words& words) {
    if (words.size() < 3 || words.size() > 4) return false;
    Value rule(rapidjson::kObjectType);
    json::set(rule, "verbs", strings(verbs_of(words[0])), allocator());
    if (words[1] == "url") {
      json::set(rule, "nonResourceURLs", strings(split(words[2], ',')), allocator());
      if (words.size() == 4) return false;
    } else {
      json::set(rule, "apiGroups", strings(groups_of(words[1])), allocator());
      json::set(rule, "resources", strings(split(words[2], ',')), allocator());
      if (words.size() == 4) {
        if (!words[3].starts_with('=')) return false;
        json::set(rule, "resourceNames", strings(split(words[3].substr(1), ',')), allocator());
      }
    }
    list("rules").PushBack(rule, allocator());
    return true;
  }

  Value strings(const Words& words) {
    Value out(rapidjson::kArrayType);
    for (const std::string& word : words)
      out.PushBack(json::copy_text(word, allocator()), allocator());
    return out;
  }

  Value& list(std::string_view name) {
    Value* present = json::find(document_, name);
    if (present != nullptr) return *present;
    return json::set(document_, name, Value(rapidjson::kArrayType), allocator());
  }

  Allocator& allocator() { return document_.GetAllocator(); }

  json::Document document_{rapidjson::kObjectType};
  std::string plural_;
};

std::optional<Draft> begin(const Words& words) {
  const std::string& kind = words[0];
  if (kind == "ClusterRole" && words.size() == 2) return Draft(kind, "clusterroles", "", words[1]);
  if (kind == "Role" && words.size() == 3) return Draft(kind, "roles", words[1], words[2]);
  const bool in_namespace = kind == "RoleBinding";
  if (!in_namespace && kind != "ClusterRoleBinding") return std::nullopt;
  // The kind, optionally a namespace, the name, the role.
  const std::size_t subjects = in_namespace ? 4 : 3;
  if (words.size() < subjects || (words.size() - subjects) % 2 != 0) return std::nullopt;
  Draft draft(kind, in_namespace ? "rolebindings" : "clusterrolebindings",
              in_namespace ? words[1] : "", words[subjects - 2]);
  draft.bind(in_namespace ? "Role" : "ClusterRole", words[subjects - 1]);
  for (std::size_t i = subjects; i < words.size(); i += 2) {
    if (!draft.add_subject(words[i], words[i + 1])) return std::nullopt;
  }
  return draft;
}

}  // namespace

std::vector<Entry> parse_policy(std::string_view text) {
  std::vector<Entry> entries;
  std::optional<Draft> draft;
  const auto finish = [&] {
    if (draft) entries.push_back(draft->entry());
    draft.reset();
  };
  std::istringstream in{std::string(text)};
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const Words words = words_of(line);
    if (words.empty() || words[0].starts_with('#')) continue;
    bool good = true;
    if (line.starts_with(' ')) {
      good = draft && draft->add(words);
    } else {
      finish();
      draft = begin(words);
      good = draft.has_value();
    }
    if (!good) throw Error(fmt::format("bootstrap policy, line {}: not understood", number));
  }
  finish();
  return entries;
}

}  // namespace lookout::apiserver::bootstrap
