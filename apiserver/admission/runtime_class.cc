#include "apiserver/admission/runtime_class.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "apiserver/json.h"
#include "apiserver/names.h"
#include "apiserver/quota/resource_list.h"
#include "apiserver/resources/forbidden_pod.h"
#include "apiserver/resources/strategies.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/api/status.h"

namespace lookout::apiserver::admission {
namespace {

StatusError unknown_class(const Object& pod) {
  return resources::forbidden_pod(
      pod, fmt::format("pod rejected: RuntimeClass {} not found",
                       api::detail::quote(pod["spec"]["runtimeClassName"].as_string())));
}

StatusError other_overhead(const Object& pod) {
  return resources::forbidden_pod(
      pod, "pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead");
}

void set_overhead(const Object& pod, const Object& runtime_class, json::Value& spec,
                  Allocator& allocator) {
  const api::Value overhead = runtime_class["overhead"];
  if (!overhead.exists()) return;
  const api::Value own = pod["spec"]["overhead"];
  const quota::ResourceList fixed = quota::resource_list(overhead["podFixed"]);
  if (own.exists() && quota::resource_list(own) != fixed) throw other_overhead(pod);
  json::Value amounts(rapidjson::kObjectType);
  for (const auto& [name, amount] : fixed) json::set(amounts, name, amount.to_string(), allocator);
  if (fixed.empty()) {
    json::erase(spec, "overhead");
  } else {
    json::set(spec, "overhead", std::move(amounts), allocator);
  }
}

void set_node_selector(const Object& pod, api::Value wanted, json::Value& spec,
                       Allocator& allocator) {
  for (const auto& [key, value] : wanted.members()) {
    const api::Value own = pod["spec"]["nodeSelector"][key];
    if (own.exists() && own.as_string() != value.as_string()) {
      throw resources::forbidden_pod(
          pod, fmt::format("conflict: runtimeClass.scheduling.nodeSelector[{}] = {}; "
                           "pod.spec.nodeSelector[{}] = {}",
                           key, value.as_string(), key, own.as_string()));
    }
    json::set(json::child(spec, "nodeSelector", allocator), key, value.as_string(), allocator);
  }
}

bool are_equal(const json::Value& a, const json::Value& b) {
  constexpr std::int64_t kNone = -1;
  for (const char* field : {"key", "operator", "value", "effect"}) {
    if (json::text(a, field) != json::text(b, field)) return false;
  }
  const bool has_seconds = json::find(a, "tolerationSeconds") != nullptr;
  return has_seconds == (json::find(b, "tolerationSeconds") != nullptr) &&
         json::integer(a, "tolerationSeconds", kNone) ==
             json::integer(b, "tolerationSeconds", kNone);
}

/// Whether `one` tolerates every taint that `other` tolerates.
bool covers(const json::Value& one, const json::Value& other) {
  if (are_equal(one, other)) return true;
  const std::string_view key = json::text(one, "key");
  const std::string_view operation = json::text(one, "operator");
  const std::string_view effect = json::text(one, "effect");
  if (key != json::text(other, "key") && (!key.empty() || operation != "Exists")) return false;
  if (!effect.empty() && effect != json::text(other, "effect")) return false;
  if (effect == "NoExecute" && json::find(one, "tolerationSeconds") != nullptr) {
    if (json::find(other, "tolerationSeconds") == nullptr ||
        json::integer(other, "tolerationSeconds", 0) > json::integer(one, "tolerationSeconds", 0))
      return false;
  }
  if (operation == "Exists") return true;
  return (operation.empty() || operation == "Equal") && json::text(other, "operator") == "Equal" &&
         json::text(other, "value") == json::text(one, "value");
}

/// Removes tolerations that others cover. If several are equal, keeps the first one.
json::Value merged(const std::vector<const json::Value*>& tolerations, Allocator& allocator) {
  std::vector<const json::Value*> kept;
  for (std::size_t i = 0; i < tolerations.size(); ++i) {
    const json::Value& one = *tolerations[i];
    const auto rest = tolerations.begin() + static_cast<std::ptrdiff_t>(i) + 1;
    if (std::any_of(kept.begin(), kept.end(),
                    [&](const json::Value* other) { return covers(*other, one); }) ||
        std::any_of(rest, tolerations.end(), [&](const json::Value* other) {
          return !are_equal(*other, one) && covers(*other, one);
        }))
      continue;
    kept.push_back(&one);
  }
  json::Value out(rapidjson::kArrayType);
  for (const json::Value* one : kept) out.PushBack(json::deep_copy(*one, allocator), allocator);
  return out;
}

void set_tolerations(const json::Value& scheduling, json::Value& spec, Allocator& allocator) {
  // The plugin DefaultTolerationSeconds runs first.
  resources::tolerate_lost_nodes(spec, allocator);
  std::vector<const json::Value*> all;
  const auto add = [&](const json::Value& toleration) { all.push_back(&toleration); };
  json::for_each(std::as_const(spec), "tolerations", add);
  json::for_each(scheduling, "tolerations", add);
  json::Value tolerations = merged(all, allocator);
  json::set(spec, "tolerations", std::move(tolerations), allocator);
}

}  // namespace

Object with_runtime_class(const Object& pod, const Object& runtime_class) {
  if (!runtime_class) throw unknown_class(pod);
  json::Document document = pod.to_document();
  Allocator& allocator = document.GetAllocator();
  json::Value* const spec = json::find(document, "spec");
  // Validation rejects a spec that is not an object.
  if (spec == nullptr || !spec->IsObject()) return pod;
  set_overhead(pod, runtime_class, *spec, allocator);
  const api::Value scheduling = runtime_class["scheduling"];
  if (scheduling.exists()) {
    const json::Document of_class = runtime_class.to_document();
    set_node_selector(pod, scheduling["nodeSelector"], *spec, allocator);
    set_tolerations(*json::find(of_class, "scheduling"), *spec, allocator);
  }
  return Object::from(document);
}

void check_runtime_class(const Object& pod, const Object& runtime_class) {
  if (!runtime_class && pod["spec"]["runtimeClassName"].exists()) throw unknown_class(pod);
  const api::Value own = pod["spec"]["overhead"];
  const api::Value overhead = runtime_class["overhead"];
  if (overhead.exists()) {
    if (quota::resource_list(own) != quota::resource_list(overhead["podFixed"]))
      throw other_overhead(pod);
  } else if (own.exists()) {
    throw resources::forbidden_pod(
        pod,
        "pod rejected: Pod Overhead set without corresponding RuntimeClass defined "
        "Overhead");
  }
}

}  // namespace lookout::apiserver::admission
