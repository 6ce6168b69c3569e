#include "apiserver/resources/conversion.h"

#include <array>
#include <utility>

#include "apiserver/json.h"
#include "apiserver/names.h"
#include "lookout/api/detail/unset_fields.h"

namespace lookout::apiserver::resources {
namespace {

struct Renaming {
  std::string_view core;
  std::string_view newer;
};
using NameOf = std::string_view Renaming::*;
constexpr std::array<Renaming, 7> kEventFields = {{{"involvedObject", "regarding"},
                                                   {"message", "note"},
                                                   {"source", "deprecatedSource"},
                                                   {"firstTimestamp", "deprecatedFirstTimestamp"},
                                                   {"lastTimestamp", "deprecatedLastTimestamp"},
                                                   {"count", "deprecatedCount"},
                                                   {"reportingComponent", "reportingController"}}};

void rename(json::Value& object, std::string_view from, std::string_view to, Allocator& allocator) {
  json::Value* value = json::find(object, from);
  if (value == nullptr) return;
  json::Value taken = std::move(*value);
  json::erase(object, from);
  json::set(object, to, std::move(taken), allocator);
}

/// Converts an event to the other group by renaming its fields.
api::Object renamed(const api::Object& event, std::string_view api_version, NameOf from,
                    NameOf to) {
  Document document = event.to_document();
  auto& allocator = document.GetAllocator();
  json::set(document, "apiVersion", api_version, allocator);
  for (const Renaming& field : kEventFields) rename(document, field.*from, field.*to, allocator);
  api::detail::add_unset_fields(document, api_version, "Event", allocator);
  return api::Object::from(document);
}

}  // namespace

api::Object core_event(const api::Object& event) {
  return renamed(event, "v1", &Renaming::newer, &Renaming::core);
}

api::Object new_event(const api::Object& event) {
  return renamed(event, "events.k8s.io/v1", &Renaming::core, &Renaming::newer);
}

}  // namespace lookout::apiserver::resources
