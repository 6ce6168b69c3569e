#include "apiserver/endpoints/request_options.h"

#include "apiserver/json.h"
#include "apiserver/names.h"
#include "lookout/base/enum_names.h"

namespace lookout::apiserver::endpoints {
namespace {

void add_dry_run(Document& document, Allocator& allocator) {
  json::Value all(rapidjson::kArrayType);
  all.PushBack(json::Value("All"), allocator);
  json::set(document, "dryRun", std::move(all), allocator);
}

/// The JSON of an object without its brackets.
std::string members_of(const Document& document) {
  const std::string text = json::to_json(document);
  return text.substr(1, text.size() - 2);
}

std::string_view name_of(resources::Propagation propagation) {
  static constexpr auto kNames =
      base::enum_names<resources::Propagation>({{resources::Propagation::kBackground, "Background"},
                                                {resources::Propagation::kForeground, "Foreground"},
                                                {resources::Propagation::kOrphan, "Orphan"}});
  return kNames.name_of(propagation);
}

}  // namespace

admission::RequestOptions admission_options(const http::Request& request,
                                            const WriteOptions& options) {
  Document document(rapidjson::kObjectType);
  Allocator& allocator = document.GetAllocator();
  if (options.dry_run) add_dry_run(document, allocator);
  for (const char* name : {"fieldManager", "fieldValidation"}) {
    const std::string_view value = request.parameter(name).value_or("");
    if (!value.empty()) json::set(document, name, value, allocator);
  }
  return {options.dry_run, members_of(document)};
}

admission::RequestOptions admission_options(const resources::DeleteOptions& options) {
  Document document(rapidjson::kObjectType);
  Allocator& allocator = document.GetAllocator();
  if (options.grace_period_seconds)
    json::set(document, "gracePeriodSeconds", json::Value(*options.grace_period_seconds),
              allocator);
  const storage::Preconditions& wanted = options.preconditions;
  if (wanted.uid || wanted.resource_version) {
    json::Value& preconditions = json::child(document, "preconditions", allocator);
    if (wanted.uid) json::set(preconditions, "uid", *wanted.uid, allocator);
    if (wanted.resource_version)
      json::set(preconditions, "resourceVersion", *wanted.resource_version, allocator);
  }
  if (const std::string_view policy = name_of(options.propagation); !policy.empty())
    json::set(document, "propagationPolicy", policy, allocator);
  if (options.dry_run) add_dry_run(document, allocator);
  return {options.dry_run, members_of(document)};
}

}  // namespace lookout::apiserver::endpoints
