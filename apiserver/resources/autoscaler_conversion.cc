// autoscaling/v1 and v2. Data without a field in v1 is in annotations, in the form of
// k8s.io/kubernetes/pkg/apis/autoscaling/v1/conversion.go.
#include <array>
#include <cstddef>
#include <initializer_list>
#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "apiserver/json.h"
#include "apiserver/resources/conversion.h"
#include "apiserver/resources/strategies.h"
#include "apiserver/resources/write_steps.h"
#include "lookout/api/detail/type_table.h"
#include "lookout/api/detail/unset_fields.h"
#include "lookout/api/quantity.h"
#include "lookout/api/time.h"
#include "lookout/base/ascii.h"

namespace lookout::apiserver::resources {
namespace {

using api::detail::Type;
using json::Document;

constexpr std::string_view kKind = "HorizontalPodAutoscaler";
constexpr std::string_view kOld = "autoscaling/v1";
constexpr std::string_view kNew = "autoscaling/v2";

/// The annotation of a field of v2.
struct Kept {
  std::string_view annotation;
  std::string_view part;
  std::string_view field;
};
constexpr Kept kMetrics{"autoscaling.alpha.kubernetes.io/metrics", "spec", "metrics"};
constexpr Kept kBehavior{"autoscaling.alpha.kubernetes.io/behavior", "spec", "behavior"};
constexpr Kept kCurrentMetrics{"autoscaling.alpha.kubernetes.io/current-metrics", "status",
                               "currentMetrics"};
constexpr Kept kConditions{"autoscaling.alpha.kubernetes.io/conditions", "status", "conditions"};
constexpr std::array<Kept, 4> kAllKept = {kMetrics, kBehavior, kCurrentMetrics, kConditions};

/// The member of a metric with its target or current value.
struct Holder {
  std::string_view name;
  bool is_target;
};
constexpr Holder kTargetHolder{"target", true};
constexpr Holder kCurrentHolder{"current", false};

/// Whether v1 writes "0" for a quantity that v2 omits.
enum class Zero { kNever, kInStatus, kAlways };

/// The names of a metric's field in both versions.
struct Place {
  /// The name in v1. If it begins with a capital letter, "target" or "current" precedes it.
  std::string_view old_name;
  /// In v2, the member of the metric with the field; empty if it is the metric itself.
  std::string_view part;
  std::string_view name;
  Zero zero = Zero::kNever;
};
/// The part with the value: "target" or "current".
constexpr std::string_view kHolder = "holder";

constexpr Place kObject[] = {{"target", "", "describedObject"},
                             {"metricName", "metric", "name"},
                             {"Value", kHolder, "value", Zero::kAlways},
                             {"selector", "metric", "selector"},
                             {"averageValue", kHolder, "averageValue"}};
constexpr Place kPodsMetric[] = {{"metricName", "metric", "name"},
                                 {"AverageValue", kHolder, "averageValue", Zero::kAlways},
                                 {"selector", "metric", "selector"}};
constexpr Place kResource[] = {{"name", "", "name"},
                               {"AverageUtilization", kHolder, "averageUtilization"},
                               {"AverageValue", kHolder, "averageValue", Zero::kInStatus},
                               {"container", "", "container"}};
constexpr Place kExternal[] = {{"metricName", "metric", "name"},
                               {"metricSelector", "metric", "selector"},
                               {"Value", kHolder, "value", Zero::kInStatus},
                               {"AverageValue", kHolder, "averageValue"}};

struct Source {
  std::string_view name;
  std::span<const Place> places;
};
constexpr std::array<Source, 5> kSources = {{{"object", kObject},
                                             {"pods", kPodsMetric},
                                             {"resource", kResource},
                                             {"containerResource", kResource},
                                             {"external", kExternal}}};

std::string old_name(const Place& place, const Holder& holder) {
  const char first = place.old_name.front();
  return first >= 'A' && first <= 'Z' ? std::string(holder.name).append(place.old_name)
                                      : std::string(place.old_name);
}

std::string_view part_of(const Place& place, const Holder& holder) {
  return place.part == kHolder ? holder.name : place.part;
}

/// Removes and returns a member of an object; null if there is none.
json::Value taken(json::Value* object, std::string_view name) {
  json::Value* member = object == nullptr ? nullptr : json::find(*object, name);
  if (member == nullptr) return {};
  json::Value out = std::move(*member);
  json::erase(*object, name);
  return out;
}

/// Converts a metric, whose source is converted with `convert(source, from)`.
template <class Convert>
json::Value converted(json::Value& metric, Allocator& allocator, Convert convert) {
  json::Value out = json::object();
  json::set(out, "type", taken(&metric, "type"), allocator);
  for (const Source& source : kSources) {
    json::Value* from = json::find(metric, source.name);
    if (from == nullptr || !from->IsObject()) continue;
    json::set(out, source.name, convert(source, *from), allocator);
  }
  return out;
}

/// Converts a metric to v1.
json::Value old_metric(json::Value& metric, const Holder& holder, Allocator& allocator) {
  return converted(metric, allocator, [&](const Source& source, json::Value& from) {
    json::Value made = json::object();
    for (const Place& place : source.places) {
      const std::string_view part = part_of(place, holder);
      json::Value value = taken(part.empty() ? &from : json::find(from, part), place.name);
      const bool zero =
          place.zero == Zero::kAlways || (place.zero == Zero::kInStatus && !holder.is_target);
      if (value.IsNull() && zero) value = json::copy_text("0", allocator);
      if (!value.IsNull()) json::set(made, old_name(place, holder), std::move(value), allocator);
    }
    return made;
  });
}

/// Sets the type of a target, for which v1 has no field.
void set_target_type(json::Value& target, std::string_view source, Allocator& allocator) {
  const bool average = json::find(target, "averageValue") != nullptr;
  // An average target has no value; v1 writes the value as zero.
  if (average && json::text(target, "value") == "0") json::erase(target, "value");
  const bool value = json::find(target, "value") != nullptr;
  std::string_view type = "AverageValue";
  if (json::find(target, "averageUtilization") != nullptr) {
    type = "Utilization";
  } else if (value && !(average && source == "object")) {
    type = "Value";
  }
  json::set(target, "type", type, allocator);
}

/// Converts a metric from v1.
json::Value new_metric(json::Value& metric, const Holder& holder, Allocator& allocator) {
  return converted(metric, allocator, [&](const Source& source, json::Value& from) {
    json::Value made = json::object();
    for (const Place& place : source.places) {
      json::Value value = taken(&from, old_name(place, holder));
      if (value.IsNull()) continue;
      const std::string_view part = part_of(place, holder);
      json::Value& where = part.empty() ? made : json::child(made, part, allocator);
      json::set(where, place.name, std::move(value), allocator);
    }
    json::Value& value = json::child(made, holder.name, allocator);
    if (holder.is_target) set_target_type(value, source.name, allocator);
    return made;
  });
}

/// The fields of the behavior, its rules and their policies, as Go writes structures without tags.
constexpr std::string_view kRules[] = {"ScaleUp", "ScaleDown"};
constexpr std::string_view kFieldsOfRules[] = {"StabilizationWindowSeconds", "SelectPolicy",
                                               "Policies", "Tolerance"};
constexpr std::string_view kFieldsOfPolicies[] = {"Type", "Value", "PeriodSeconds"};
constexpr std::array<std::span<const std::string_view>, 3> kLevels = {kRules, kFieldsOfRules,
                                                                      kFieldsOfPolicies};

json::Value old_behavior(json::Value value, std::size_t level, Allocator& allocator) {
  if (value.IsArray()) {
    for (json::Value& element : value.GetArray())
      element = old_behavior(std::move(element), level, allocator);
  }
  if (!value.IsObject() || level == kLevels.size()) return value;
  json::Value out = json::object();
  for (const std::string_view name : kLevels[level]) {
    std::string newer(name);
    newer.front() = static_cast<char>(newer.front() - 'A' + 'a');
    json::set(out, name, old_behavior(taken(&value, newer), level + 1, allocator), allocator);
  }
  return out;
}

/// Renames members to the type's fields, because Go's decoder ignores case.
void rename_as_fields(json::Value& value, Type type, Allocator& allocator) {
  using api::detail::Shape;
  if (type.shape() == Shape::kList && value.IsArray()) {
    for (json::Value& element : value.GetArray())
      rename_as_fields(element, type.element(), allocator);
  }
  if (type.shape() != Shape::kStruct || !value.IsObject()) return;
  for (auto& member : value.GetObject()) {
    for (const api::detail::Field field : type.fields()) {
      if (!base::equal_ignoring_case(field.name(), json::text_of(member.name))) continue;
      member.name = json::copy_text(field.name(), allocator);
      rename_as_fields(member.value, field.type(), allocator);
    }
  }
}

bool fits_scalar(const json::Value& value, Type type) {
  using api::detail::Scalar;
  switch (type.scalar()) {
    case Scalar::kString:
      return value.IsString() && (type.short_name() != "Quantity" ||
                                  api::Quantity::parse(json::text_of(value)).has_value());
    case Scalar::kDateTime:
      return value.IsString() && api::parse_time(json::text_of(value)).has_value();
    case Scalar::kInt32:
      return value.IsInt();
    case Scalar::kInt64:
      return value.IsInt64();
    case Scalar::kBoolean:
      return value.IsBool();
    default:
      return false;
  }
}

/// Whether Go can decode the value into this type.
bool fits(const json::Value& value, Type type) {
  using api::detail::Shape;
  if (value.IsNull()) return true;
  switch (type.shape()) {
    case Shape::kScalar:
      return fits_scalar(value, type);
    case Shape::kList:
      if (!value.IsArray()) return false;
      for (const json::Value& element : value.GetArray()) {
        if (!fits(element, type.element())) return false;
      }
      return true;
    case Shape::kMap:
      if (!value.IsObject()) return false;
      for (const auto& member : value.GetObject()) {
        if (!fits(member.value, type.element())) return false;
      }
      return true;
    case Shape::kStruct:
      if (!value.IsObject()) return false;
      for (const auto& member : value.GetObject()) {
        const auto field = type.field(json::text_of(member.name));
        if (field && !fits(member.value, field->type())) return false;
      }
      return true;
  }
  return false;
}

Type type_of(const Kept& kept) {
  return Type::of_kind("autoscaling", "v2", kKind)
      ->field(kept.part)
      ->type()
      .field(kept.field)
      ->type();
}

json::Value* annotations_of(json::Value& autoscaler) {
  json::Value* metadata = json::find(autoscaler, "metadata");
  return metadata == nullptr ? nullptr : json::find(*metadata, "annotations");
}

void annotate(json::Value& autoscaler, const Kept& kept, const json::Value& value,
              Allocator& allocator) {
  json::Value& metadata = json::child(autoscaler, "metadata", allocator);
  json::set(json::child(metadata, "annotations", allocator), kept.annotation, json::to_json(value),
            allocator);
}

/// The value in an annotation, in the form of v2; null if there is none, or if it is invalid.
json::Value annotated(json::Value& autoscaler, const Kept& kept, Allocator& allocator) {
  const json::Value* annotations = annotations_of(autoscaler);
  const std::string_view text =
      annotations == nullptr ? std::string_view() : json::text(*annotations, kept.annotation);
  if (text.empty()) return {};
  Document value(&allocator);
  if (!json::parse_json(text, value)) return {};
  const bool of_spec = kept.field == kMetrics.field;
  if (kept.field == kBehavior.field) {
    rename_as_fields(value, type_of(kept), allocator);
  } else if (value.IsArray() && (of_spec || kept.field == kCurrentMetrics.field)) {
    const Holder& holder = of_spec ? kTargetHolder : kCurrentHolder;
    for (json::Value& metric : value.GetArray()) {
      if (!metric.IsObject()) return {};
      metric = new_metric(metric, holder, allocator);
    }
  }
  if (!fits(value, type_of(kept))) return {};
  return std::move(static_cast<json::Value&>(value));
}

/// Moves the CPU target into v1's field, and the other metrics into annotations.
void write_old_spec(json::Value& autoscaler, json::Value& spec, Allocator& allocator) {
  json::Value metrics = taken(&spec, kMetrics.field);
  json::Value others(rapidjson::kArrayType);
  bool had_cpu = false;
  for (json::Value* metric = metrics.IsArray() ? metrics.Begin() : nullptr;
       metric != nullptr && metric != metrics.End(); ++metric) {
    json::Value* resource = json::find(*metric, "resource");
    if (!had_cpu && resource != nullptr && json::text(*resource, "name") == "cpu") {
      had_cpu = true;
      json::Value percent = taken(json::find(*resource, "target"), "averageUtilization");
      if (!percent.IsNull()) {
        json::set(spec, "targetCPUUtilizationPercentage", std::move(percent), allocator);
        continue;
      }
    }
    others.PushBack(old_metric(*metric, kTargetHolder, allocator), allocator);
  }
  if (!others.Empty()) annotate(autoscaler, kMetrics, others, allocator);
  const json::Value behavior = old_behavior(taken(&spec, kBehavior.field), 0, allocator);
  if (behavior.IsObject()) annotate(autoscaler, kBehavior, behavior, allocator);
}

void write_old_status(json::Value& autoscaler, json::Value& status, Allocator& allocator) {
  json::Value metrics = taken(&status, kCurrentMetrics.field);
  if (metrics.IsArray() && !metrics.Empty()) {
    for (json::Value& metric : metrics.GetArray()) {
      const json::Value* resource = json::find(metric, "resource");
      const json::Value* current = resource == nullptr || json::text(*resource, "name") != "cpu"
                                       ? nullptr
                                       : json::find(*resource, kCurrentHolder.name);
      const json::Value* percent =
          current == nullptr ? nullptr : json::find(*current, "averageUtilization");
      if (percent != nullptr) {
        json::set(status, "currentCPUUtilizationPercentage", json::deep_copy(*percent, allocator),
                  allocator);
      }
      metric = old_metric(metric, kCurrentHolder, allocator);
    }
    annotate(autoscaler, kCurrentMetrics, metrics, allocator);
  }
  const json::Value conditions = taken(&status, kConditions.field);
  if (conditions.IsArray() && !conditions.Empty())
    annotate(autoscaler, kConditions, conditions, allocator);
}

/// The CPU metric from v1's field; empty without the field.
json::Value cpu_metrics(json::Value* part, std::string_view field, const Holder& holder,
                        Allocator& allocator) {
  json::Value metrics(rapidjson::kArrayType);
  json::Value percent = taken(part, field);
  if (percent.IsNull()) return metrics;
  json::Value value = json::object();
  if (holder.is_target) json::set(value, "type", "Utilization", allocator);
  json::set(value, "averageUtilization", std::move(percent), allocator);
  json::Value resource = json::object();
  json::set(resource, "name", "cpu", allocator);
  json::set(resource, holder.name, std::move(value), allocator);
  json::Value metric = json::object();
  json::set(metric, "type", "Resource", allocator);
  json::set(metric, "resource", std::move(resource), allocator);
  metrics.PushBack(metric, allocator);
  return metrics;
}

/// Copies the annotations of the old object.
void take_annotations(json::Value& autoscaler, const json::Value& old,
                      std::initializer_list<Kept> all, Allocator& allocator) {
  if (json::text(autoscaler, "apiVersion") != kOld) return;
  const json::Value* before = annotations_of(const_cast<json::Value&>(old));
  const json::Value none = json::object();
  json::Value& metadata = json::child(autoscaler, "metadata", allocator);
  json::Value& annotations = json::child(metadata, "annotations", allocator);
  for (const Kept& kept : all)
    json::take(annotations, before == nullptr ? none : *before, kept.annotation, allocator);
  if (annotations.ObjectEmpty()) json::erase(metadata, "annotations");
}

}  // namespace

bool drop_autoscaler_annotations(json::Value& autoscaler) {
  json::Value* annotations = annotations_of(autoscaler);
  bool had = false;
  for (const Kept& kept : kAllKept) {
    if (annotations == nullptr || json::find(*annotations, kept.annotation) == nullptr) continue;
    json::erase(*annotations, kept.annotation);
    had = true;
  }
  if (had && annotations->ObjectEmpty())
    json::erase(*json::find(autoscaler, "metadata"), "annotations");
  return had;
}

bool has_annotated_metrics(json::Value& autoscaler, Allocator& allocator) {
  const json::Value metrics = annotated(autoscaler, kMetrics, allocator);
  return metrics.IsArray() && !metrics.Empty();
}

void prepare_autoscaler_update(json::Value& autoscaler, const json::Value& old,
                               Allocator& allocator) {
  take_annotations(autoscaler, old, {kCurrentMetrics, kConditions}, allocator);
}

void prepare_autoscaler_status(json::Value& autoscaler, const json::Value& old,
                               Allocator& allocator) {
  take_annotations(autoscaler, old, {kMetrics, kBehavior}, allocator);
}

api::Object autoscaler_v2(const api::Object& autoscaler) {
  Document document = autoscaler.to_document();
  auto& allocator = document.GetAllocator();
  json::set(document, "apiVersion", kNew, allocator);
  const auto put = [&](const Kept& kept, json::Value value) {
    if (value.IsNull() || (value.IsArray() && value.Empty())) return;
    json::set(json::child(document, kept.part, allocator), kept.field, std::move(value), allocator);
  };
  json::Value metrics = annotated(document, kMetrics, allocator);
  if (!metrics.IsArray()) metrics.SetArray();
  json::Value cpu = cpu_metrics(json::find(document, "spec"), "targetCPUUtilizationPercentage",
                                kTargetHolder, allocator);
  for (json::Value& metric : cpu.GetArray()) metrics.PushBack(metric, allocator);
  put(kMetrics, std::move(metrics));
  put(kBehavior, annotated(document, kBehavior, allocator));
  json::Value current = cpu_metrics(json::find(document, "status"),
                                    "currentCPUUtilizationPercentage", kCurrentHolder, allocator);
  // The annotation has more detail than the field.
  json::Value all_current = annotated(document, kCurrentMetrics, allocator);
  put(kCurrentMetrics, all_current.IsArray() ? std::move(all_current) : std::move(current));
  put(kConditions, annotated(document, kConditions, allocator));
  if (drop_autoscaler_annotations(document)) {
    document =
        typed_document({"autoscaling", "v2", std::string(kKind)}, api::Object::from(document));
    default_autoscaler(document, document.GetAllocator());
  }
  api::detail::add_unset_fields(document, kNew, kKind, document.GetAllocator());
  return api::Object::from(document);
}

api::Object autoscaler_v1(const api::Object& autoscaler) {
  Document document = autoscaler.to_document();
  auto& allocator = document.GetAllocator();
  json::set(document, "apiVersion", kOld, allocator);
  json::child(document, "metadata", allocator);
  drop_autoscaler_annotations(document);
  if (json::Value* spec = json::find(document, "spec")) write_old_spec(document, *spec, allocator);
  if (json::Value* status = json::find(document, "status"))
    write_old_status(document, *status, allocator);
  api::detail::add_unset_fields(document, kOld, kKind, allocator);
  return api::Object::from(document);
}

}  // namespace lookout::apiserver::resources
