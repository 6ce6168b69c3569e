#include "apiserver/resources/conversion.h"

#include <array>
#include <utility>

#include "apiserver/json.h"
#include "lookout/api/detail/unset_fields.h"

namespace lookout::apiserver::resources {
namespace {

using json::Allocator;
using json::Document;

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

/// An event in the other group, with its fields under their names there.
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

api::Object autoscaler_v2(const api::Object& autoscaler) {
  Document document = autoscaler.to_document();
  auto& allocator = document.GetAllocator();
  json::set(document, "apiVersion", "autoscaling/v2", allocator);
  const auto cpu_metric = [&](std::string_view part, std::string_view holder, json::Value percent) {
    json::Value value = json::object();
    if (holder == "target") json::set(value, "type", "Utilization", allocator);
    json::set(value, "averageUtilization", std::move(percent), allocator);
    json::Value resource = json::object();
    json::set(resource, "name", "cpu", allocator);
    json::set(resource, holder, std::move(value), allocator);
    json::Value metric = json::object();
    json::set(metric, "type", "Resource", allocator);
    json::set(metric, "resource", std::move(resource), allocator);
    json::Value metrics(rapidjson::kArrayType);
    metrics.PushBack(metric, allocator);
    json::set(json::child(document, part, allocator), part == "spec" ? "metrics" : "currentMetrics",
              std::move(metrics), allocator);
  };
  if (json::Value* spec = json::find(document, "spec")) {
    if (json::Value* percent = json::find(*spec, "targetCPUUtilizationPercentage")) {
      json::Value taken = std::move(*percent);
      json::erase(*spec, "targetCPUUtilizationPercentage");
      cpu_metric("spec", "target", std::move(taken));
    }
  }
  if (json::Value* status = json::find(document, "status")) {
    if (json::Value* percent = json::find(*status, "currentCPUUtilizationPercentage")) {
      json::Value taken = std::move(*percent);
      json::erase(*status, "currentCPUUtilizationPercentage");
      cpu_metric("status", "current", std::move(taken));
    }
  }
  api::detail::add_unset_fields(document, "autoscaling/v2", "HorizontalPodAutoscaler", allocator);
  return api::Object::from(document);
}

api::Object autoscaler_v1(const api::Object& autoscaler) {
  Document document = autoscaler.to_document();
  auto& allocator = document.GetAllocator();
  json::set(document, "apiVersion", "autoscaling/v1", allocator);
  const auto cpu_percent = [&](std::string_view part, std::string_view list,
                               std::string_view holder, std::string_view field) {
    json::Value* where = json::find(document, part);
    if (where == nullptr) return;
    json::Value percent;
    json::for_each(*where, list, [&](json::Value& metric) {
      const json::Value* resource = json::find(metric, "resource");
      if (resource == nullptr || json::text(*resource, "name") != "cpu") return;
      const json::Value* value = json::find(*resource, holder);
      const json::Value* number =
          value == nullptr ? nullptr : json::find(*value, "averageUtilization");
      if (number != nullptr) percent = json::deep_copy(*number, allocator);
    });
    json::erase(*where, list);
    if (!percent.IsNull()) json::set(*where, field, std::move(percent), allocator);
  };
  cpu_percent("spec", "metrics", "target", "targetCPUUtilizationPercentage");
  cpu_percent("status", "currentMetrics", "current", "currentCPUUtilizationPercentage");
  if (json::Value* spec = json::find(document, "spec")) json::erase(*spec, "behavior");
  if (json::Value* status = json::find(document, "status")) json::erase(*status, "conditions");
  api::detail::add_unset_fields(document, "autoscaling/v1", "HorizontalPodAutoscaler", allocator);
  return api::Object::from(document);
}

}  // namespace lookout::apiserver::resources
