#include "apiserver/resources/resource_registry.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <utility>

#include "apiserver/resources/conditions.h"
#include "apiserver/resources/converting_storage.h"
#include "apiserver/resources/names.h"
#include "apiserver/resources/object_meta.h"
#include "apiserver/resources/selectable_fields.h"
#include "apiserver/resources/strategy.h"
#include "apiserver/resources/version_schemas.h"
#include "apiserver/resources/webhook_converter.h"
#include "lookout/api/detail/texts.h"

namespace lookout::apiserver::resources {
namespace {

/// Splits ".spec.replicas" into names.
std::vector<std::string> json_path(std::string_view path) {
  std::vector<std::string> out;
  while (!path.empty()) {
    if (path.front() == '.') path.remove_prefix(1);
    const std::size_t end = std::min(path.find('.'), path.size());
    out.emplace_back(path.substr(0, end));
    path.remove_prefix(end);
  }
  return out;
}

/// Versions in the order of preference: stable ones first, higher ones first.
struct Priority {
  int stability = 0;  // 3: v1, 2: v1beta1, 1: v1alpha1, 0: anything else
  int major = 0;
  int minor = 0;
};

Priority priority_of(std::string_view version) {
  Priority out;
  const auto number = [&](std::size_t& at) {
    int value = -1;
    while (at < version.size() && version[at] >= '0' && version[at] <= '9') {
      value = std::max(value, 0) * 10 + (version[at++] - '0');
      if (value > 1000000) return -1;
    }
    return value;
  };
  std::size_t at = 1;
  if (!version.starts_with('v')) return {};
  out.major = number(at);
  if (out.major < 0) return {};
  if (at == version.size()) {
    out.stability = 3;
    return out;
  }
  for (const auto& [word, stability] : {std::pair{"beta", 2}, std::pair{"alpha", 1}}) {
    if (!version.substr(at).starts_with(word)) continue;
    std::size_t digits = at + std::string_view(word).size();
    out.minor = number(digits);
    if (out.minor < 0 || digits != version.size()) return {};
    out.stability = stability;
    return out;
  }
  return {};
}

bool is_preferred(std::string_view a, std::string_view b) {
  const Priority x = priority_of(a);
  const Priority y = priority_of(b);
  if (x.stability != y.stability) return x.stability > y.stability;
  if (x.stability == 0) return a < b;
  return std::pair(x.major, x.minor) > std::pair(y.major, y.minor);
}

/// The warning for clients of a deprecated version; empty if the version is not deprecated.
std::string deprecation_of(Value spec, Value version) {
  if (!version["deprecated"].as_bool()) return {};
  if (const Value warning = version["deprecationWarning"]; warning.exists())
    return std::string(warning.as_string());
  const std::string_view name = version["name"].as_string();
  std::string_view better;
  for (const Value other : spec["versions"].elements()) {
    const std::string_view candidate = other["name"].as_string();
    if (!other["served"].as_bool() || other["deprecated"].as_bool()) continue;
    if (is_preferred(candidate, better.empty() ? name : better)) better = candidate;
  }
  const std::string_view group = spec["group"].as_string();
  const std::string_view kind = spec["names"]["kind"].as_string();
  std::string text = fmt::format("{}/{} {} is deprecated", group, name, kind);
  if (!better.empty()) text += fmt::format("; use {}/{} {}", group, better, kind);
  return text;
}

/// The delay before watches of removed resources end, so that they deliver the deletions.
constexpr std::chrono::milliseconds kLastEvents{500};

/// The storage location of a custom resource's objects.
std::string place_of(const std::string& group, const std::string& plural) {
  return group + "/" + plural;
}

/// Identifies a version for its watches, which would otherwise continue with the old schema: they
/// end when this changes.
std::string name_of(const Object& definition, const ServedResource& resource) {
  return fmt::format("{}/{}/{}/{}", definition.uid(), resource.type.version,
                     definition["metadata"]["generation"].as_int(),
                     definition["status"]["acceptedNames"].to_json());
}

/// The resources of a definition: one per served version; none before its first names are accepted.
/// `webhooks` may be null.
std::vector<std::shared_ptr<ServedResource>> custom_resources(const Object& definition,
                                                              storage::Backend& backend,
                                                              webhooks::WebhookClient* webhooks) {
  std::vector<std::shared_ptr<ServedResource>> out;
  if (!is_condition_true(definition, "Established")) return out;
  const Value spec = definition["spec"];
  const Value names = definition["status"]["acceptedNames"];
  const std::string group(spec["group"].as_string());
  const std::string plural(names["plural"].as_string());
  std::string storage_version;
  for (const Value version : spec["versions"].elements()) {
    if (version["storage"].as_bool())
      storage_version = group + "/" + std::string(version["name"].as_string());
  }
  const auto schemas = std::make_shared<const VersionSchemas>(definition);
  std::shared_ptr<const WebhookConverter> converter;
  if (webhooks != nullptr && spec["conversion"]["strategy"].as_string() == "Webhook")
    converter = std::make_shared<const WebhookConverter>(*webhooks, spec, schemas);
  for (const Value version : spec["versions"].elements()) {
    if (!version["served"].as_bool()) continue;
    auto resource = std::make_shared<ServedResource>();
    resource->type = api::Resource(group, std::string(version["name"].as_string()),
                                   std::string(names["kind"].as_string()), plural,
                                   spec["scope"].as_string() == "Namespaced");
    resource->list_kind = names["listKind"].as_string();
    resource->singular = names["singular"].as_string();
    resource->verbs = {"delete", "deletecollection", "get",    "list",
                       "patch",  "create",           "update", "watch"};
    resource->short_names = api::detail::texts_of(names["shortNames"]);
    resource->categories = api::detail::texts_of(names["categories"]);
    resource->custom = true;
    resource->terminating = is_deleting(definition);
    resource->deprecation = deprecation_of(spec, version);
    resource->storage_version = storage_version;
    resource->storage = &backend.resource(place_of(group, plural), {}, plural + "." + group);
    if (converter != nullptr) {
      resource->converter = converter;
      resource->converting_storage = std::make_shared<ConvertingStorage>(
          *resource->storage, converter, resource->type.api_version(), storage_version);
    }
    resource->strategy = &custom_resource_strategy();
    resource->schema = schemas->find(resource->type.api_version());
    resource->schemas = schemas;
    resource->printer = tables::Printer::of_custom(version);
    const Value subresources = version["subresources"];
    const std::vector<std::string> verbs = {"get", "patch", "update"};
    if (subresources["status"].exists())
      resource->subresources.push_back({"status", resource->type.gvk(), verbs});
    if (const Value scale = subresources["scale"]; scale.exists()) {
      resource->subresources.push_back({"scale", {"autoscaling", "v1", "Scale"}, verbs});
      resource->scale = ScalePaths{json_path(scale["specReplicasPath"].as_string()),
                                   json_path(scale["statusReplicasPath"].as_string()),
                                   json_path(scale["labelSelectorPath"].as_string())};
    }
    std::vector<std::string> fields;
    for (const Value field : version["selectableFields"].elements())
      fields.emplace_back(field["jsonPath"].as_string());
    add_selectable_fields(*resource, fields);
    out.push_back(std::move(resource));
  }
  return out;
}

}  // namespace

ResourceRegistry::ResourceRegistry(storage::Backend& backend)
    : backend_(backend), builtin_(builtin_resources(backend)) {
  table_ = std::make_shared<const ResourceTable>(builtin_);
  definitions_ = table_->find("apiextensions.k8s.io", "v1", "customresourcedefinitions");
}

std::shared_ptr<const ResourceTable> ResourceRegistry::table() const {
  const std::lock_guard lock(mutex_);
  return table_;
}

void ResourceRegistry::publish(storage::Revision revision, const std::vector<Object>& definitions) {
  const std::lock_guard publishing(publishing_);
  // A concurrent call may have read a newer state.
  if (revision < revision_) return;
  revision_ = revision;
  std::vector<ServedResourcePtr> custom;
  std::set<std::string> places;
  std::map<std::string, std::stop_source> served;
  std::map<std::string, Defined, std::less<>> defined;
  for (const Object& definition : definitions) {
    const auto before = defined_.find(definition.name());
    const bool is_known = before != defined_.end() && before->second.definition == definition;
    Defined one = is_known ? std::move(before->second)
                           : Defined{definition, custom_resources(definition, backend_, webhooks_)};
    for (const auto& resource : one.resources) {
      places.insert(place_of(resource->type.group, resource->type.plural));
      std::string name = name_of(definition, *resource);
      const auto known = served_.find(name);
      std::stop_source watches = known == served_.end() ? std::stop_source() : known->second;
      // Other threads read known resources, which must not change.
      if (!is_known) resource->retired = watches.get_token();
      served.emplace(std::move(name), std::move(watches));
      custom.push_back(resource);
    }
    defined.emplace(definition.name(), std::move(one));
  }
  defined_ = std::move(defined);
  // If two resources have the same short name, clients use the first one in discovery.
  std::stable_sort(custom.begin(), custom.end(), [](const auto& a, const auto& b) {
    if (a->type.group != b->type.group) return a->type.group < b->type.group;
    return is_preferred(a->type.version, b->type.version);
  });
  std::vector<ServedResourcePtr> resources = builtin_;
  resources.insert(resources.end(), custom.begin(), custom.end());
  {
    const std::lock_guard lock(mutex_);
    table_ = std::make_shared<const ResourceTable>(std::move(resources));
  }
  for (const std::string& place : places_) {
    if (!places.contains(place)) backend_.release(place);
  }
  places_ = std::move(places);
  for (auto& [name, watches] : served_) {
    if (!served.contains(name))
      retired_.push_back({std::chrono::steady_clock::now() + kLastEvents, std::move(watches)});
  }
  served_ = std::move(served);
}

ResourceRegistry::TimePoint ResourceRegistry::end_retired() {
  const TimePoint now = std::chrono::steady_clock::now();
  TimePoint next = TimePoint::max();
  std::vector<Retired> due;
  {
    const std::lock_guard publishing(publishing_);
    auto later = std::find_if(retired_.begin(), retired_.end(),
                              [&](const Retired& one) { return one.due > now; });
    due.assign(std::make_move_iterator(retired_.begin()), std::make_move_iterator(later));
    retired_.erase(retired_.begin(), later);
    if (!retired_.empty()) next = retired_.front().due;
  }
  for (Retired& one : due) one.watches.request_stop();
  return next;
}

Awaitable<void> ResourceRegistry::refresh() {
  storage::ListOptions options;
  storage::ListResult list = co_await definitions_->storage->list("", true, std::move(options));
  const storage::Revision revision = list.revision;
  const std::vector<Object> all = co_await storage::read_all(std::move(list));
  publish(revision, all);
}

Awaitable<void> ResourceRegistry::follow(std::function<Awaitable<void>()> changed) {
  storage::WatchOptions options;
  const auto watch = co_await definitions_->storage->watch("", true, std::move(options));
  std::vector<storage::Event> events;
  for (;;) {
    const TimePoint due = end_retired();
    const bool more = co_await watch->next(events, due);
    if (!more) break;
    if (events.empty()) continue;
    co_await changed();
    co_await refresh();
  }
}

}  // namespace lookout::apiserver::resources
