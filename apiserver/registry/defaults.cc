#include <string>
#include <string_view>
#include <utility>

#include "apiserver/registry/strategies.h"
#include "lookout/api/base64.h"

namespace lookout::apiserver::registry {
namespace {

using json::Allocator;
using json::Value;

Value object() { return Value(rapidjson::kObjectType); }

/// "latest", or no tag at all, is pulled every time.
std::string_view pull_policy(std::string_view image) {
  if (image.find('@') != std::string_view::npos) return "IfNotPresent";
  const std::size_t colon = image.rfind(':');
  const std::size_t slash = image.rfind('/');
  const bool tagged =
      colon != std::string_view::npos && (slash == std::string_view::npos || colon > slash);
  return tagged && image.substr(colon + 1) != "latest" ? "IfNotPresent" : "Always";
}

void default_probe(Value& container, std::string_view name, Allocator& allocator) {
  Value* probe = json::find(container, name);
  if (probe == nullptr || !probe->IsObject()) return;
  const auto number = [&](std::string_view field, int value) {
    if (json::integer(*probe, field, 0) == 0) json::set(*probe, field, Value(value), allocator);
  };
  number("timeoutSeconds", 1);
  number("periodSeconds", 10);
  number("successThreshold", 1);
  number("failureThreshold", 3);
  if (Value* get = json::find(*probe, "httpGet"); get != nullptr && get->IsObject()) {
    json::set_default(*get, "path", "/", allocator);
    json::set_default(*get, "scheme", "HTTP", allocator);
  }
}

void default_container(Value& container, Allocator& allocator) {
  if (!container.IsObject()) return;
  json::set_default(container, "imagePullPolicy", pull_policy(json::text(container, "image")),
                    allocator);
  json::set_default(container, "terminationMessagePath", "/dev/termination-log", allocator);
  json::set_default(container, "terminationMessagePolicy", "File", allocator);
  json::set_default(container, "resources", object(), allocator);
  json::for_each(container, "ports", [&](Value& port) {
    if (port.IsObject()) json::set_default(port, "protocol", "TCP", allocator);
  });
  for (const char* probe : {"livenessProbe", "readinessProbe", "startupProbe"})
    default_probe(container, probe, allocator);
}

void default_pod_spec(Value& spec, Allocator& allocator) {
  if (!spec.IsObject()) return;
  json::set_default(spec, "restartPolicy", "Always", allocator);
  json::set_default(spec, "terminationGracePeriodSeconds", Value(30), allocator);
  json::set_default(spec, "dnsPolicy", "ClusterFirst", allocator);
  json::set_default(spec, "securityContext", object(), allocator);
  json::set_default(spec, "schedulerName", "default-scheduler", allocator);
  const auto visit = [&](Value& container) { default_container(container, allocator); };
  json::for_each(spec, "containers", visit);
  json::for_each(spec, "initContainers", visit);
}

/// spec.template of a workload.
void default_template(Value& spec, Allocator& allocator) {
  Value* pod = json::find(spec, "template");
  if (pod == nullptr || !pod->IsObject()) return;
  if (Value* pod_spec = json::find(*pod, "spec")) default_pod_spec(*pod_spec, allocator);
}

/// The spec of a workload, its template filled in; null if there is none.
Value* workload_spec(Value& workload, Allocator& allocator) {
  Value* spec = json::find(workload, "spec");
  if (spec == nullptr || !spec->IsObject()) return nullptr;
  default_template(*spec, allocator);
  return spec;
}

/// Labels of the object itself, from its template.
void default_labels(Value& object_, const Value& spec, Allocator& allocator) {
  const Value* pod = json::find(spec, "template");
  const Value* metadata = pod == nullptr ? nullptr : json::find(*pod, "metadata");
  const Value* labels = metadata == nullptr ? nullptr : json::find(*metadata, "labels");
  if (labels == nullptr) return;
  Value& own = json::child(object_, "metadata", allocator);
  const Value* present = json::find(own, "labels");
  if (present == nullptr || present->IsNull())
    json::set(own, "labels", json::deep_copy(*labels, allocator), allocator);
}

}  // namespace

void default_pod(Value& pod, Allocator& allocator) {
  Value* spec = json::find(pod, "spec");
  if (spec == nullptr || !spec->IsObject()) return;
  default_pod_spec(*spec, allocator);
  json::set_default(*spec, "enableServiceLinks", Value(true), allocator);
}

void default_deployment(Value& deployment, Allocator& allocator) {
  Value* spec = workload_spec(deployment, allocator);
  if (spec == nullptr) return;
  json::set_default(*spec, "replicas", Value(1), allocator);
  Value& strategy = json::child(*spec, "strategy", allocator);
  json::set_default(strategy, "type", "RollingUpdate", allocator);
  if (json::text(strategy, "type") == "RollingUpdate") {
    Value& rolling = json::child(strategy, "rollingUpdate", allocator);
    json::set_default(rolling, "maxUnavailable", Value("25%"), allocator);
    json::set_default(rolling, "maxSurge", Value("25%"), allocator);
  }
  json::set_default(*spec, "revisionHistoryLimit", Value(10), allocator);
  json::set_default(*spec, "progressDeadlineSeconds", Value(600), allocator);
}

void default_replica_set(Value& set, Allocator& allocator) {
  Value* spec = workload_spec(set, allocator);
  if (spec == nullptr) return;
  json::set_default(*spec, "replicas", Value(1), allocator);
  default_labels(set, *spec, allocator);
}

void default_replication_controller(Value& controller, Allocator& allocator) {
  Value* spec = workload_spec(controller, allocator);
  if (spec == nullptr) return;
  json::set_default(*spec, "replicas", Value(1), allocator);
  default_labels(controller, *spec, allocator);
  const Value* pod = json::find(*spec, "template");
  const Value* metadata = pod == nullptr ? nullptr : json::find(*pod, "metadata");
  const Value* labels = metadata == nullptr ? nullptr : json::find(*metadata, "labels");
  if (labels != nullptr)
    json::set_default(*spec, "selector", json::deep_copy(*labels, allocator), allocator);
}

void default_stateful_set(Value& set, Allocator& allocator) {
  Value* spec = workload_spec(set, allocator);
  if (spec == nullptr) return;
  json::set_default(*spec, "replicas", Value(1), allocator);
  json::set_default(*spec, "podManagementPolicy", "OrderedReady", allocator);
  Value& strategy = json::child(*spec, "updateStrategy", allocator);
  json::set_default(strategy, "type", "RollingUpdate", allocator);
  if (json::text(strategy, "type") == "RollingUpdate")
    json::set_default(json::child(strategy, "rollingUpdate", allocator), "partition", Value(0),
                      allocator);
  Value& retention = json::child(*spec, "persistentVolumeClaimRetentionPolicy", allocator);
  json::set_default(retention, "whenDeleted", "Retain", allocator);
  json::set_default(retention, "whenScaled", "Retain", allocator);
  json::set_default(*spec, "revisionHistoryLimit", Value(10), allocator);
}

void default_daemon_set(Value& set, Allocator& allocator) {
  Value* spec = workload_spec(set, allocator);
  if (spec == nullptr) return;
  Value& strategy = json::child(*spec, "updateStrategy", allocator);
  json::set_default(strategy, "type", "RollingUpdate", allocator);
  if (json::text(strategy, "type") == "RollingUpdate") {
    Value& rolling = json::child(strategy, "rollingUpdate", allocator);
    json::set_default(rolling, "maxUnavailable", Value(1), allocator);
    json::set_default(rolling, "maxSurge", Value(0), allocator);
  }
  json::set_default(*spec, "revisionHistoryLimit", Value(10), allocator);
}

void default_job(Value& job, Allocator& allocator) {
  Value* spec = workload_spec(job, allocator);
  if (spec == nullptr) return;
  const bool sized =
      json::find(*spec, "completions") != nullptr || json::find(*spec, "parallelism") != nullptr;
  if (!sized) json::set(*spec, "completions", Value(1), allocator);
  json::set_default(*spec, "parallelism", Value(1), allocator);
  json::set_default(*spec, "backoffLimit", Value(6), allocator);
  json::set_default(*spec, "completionMode", "NonIndexed", allocator);
  json::set_default(*spec, "suspend", Value(false), allocator);
}

void default_cron_job(Value& cron_job, Allocator& allocator) {
  Value* spec = json::find(cron_job, "spec");
  if (spec == nullptr || !spec->IsObject()) return;
  json::set_default(*spec, "concurrencyPolicy", "Allow", allocator);
  json::set_default(*spec, "suspend", Value(false), allocator);
  json::set_default(*spec, "successfulJobsHistoryLimit", Value(3), allocator);
  json::set_default(*spec, "failedJobsHistoryLimit", Value(1), allocator);
  Value* job = json::find(*spec, "jobTemplate");
  Value* job_spec = job == nullptr ? nullptr : json::find(*job, "spec");
  if (job_spec != nullptr && job_spec->IsObject()) default_template(*job_spec, allocator);
}

void default_service(Value& service, Allocator& allocator) {
  Value* spec = json::find(service, "spec");
  if (spec == nullptr || !spec->IsObject()) return;
  json::set_default(*spec, "sessionAffinity", "None", allocator);
  json::set_default(*spec, "type", "ClusterIP", allocator);
  json::set_default(*spec, "internalTrafficPolicy", "Cluster", allocator);
  json::for_each(*spec, "ports", [&](Value& port) {
    if (!port.IsObject()) return;
    json::set_default(port, "protocol", "TCP", allocator);
    if (const Value* number = json::find(port, "port"); number != nullptr && number->IsInt())
      json::set_default(port, "targetPort", Value(number->GetInt()), allocator);
  });
}

void default_namespace(Value& ns, Allocator& allocator) {
  Value& metadata = json::child(ns, "metadata", allocator);
  const std::string name(json::text(metadata, "name"));
  if (name.empty()) return;
  json::set(json::child(metadata, "labels", allocator), "kubernetes.io/metadata.name", name,
            allocator);
}

void default_secret(Value& secret, Allocator& allocator) {
  json::set_default(secret, "type", "Opaque", allocator);
  // stringData is for writing only.
  Value* plain = json::find(secret, "stringData");
  if (plain == nullptr) return;
  if (plain->IsObject() && !plain->ObjectEmpty()) {
    Value texts = std::move(*plain);
    Value& data = json::child(secret, "data", allocator);
    for (const auto& [name, value] : texts.GetObject()) {
      if (value.IsString())
        json::set(data, json::text_of(name), api::encode_base64(json::text_of(value)), allocator);
    }
  }
  json::erase(secret, "stringData");
}

void default_autoscaler(Value& autoscaler, Allocator& allocator) {
  Value* spec = json::find(autoscaler, "spec");
  if (spec == nullptr || !spec->IsObject()) return;
  json::set_default(*spec, "minReplicas", Value(1), allocator);
}

void default_persistent_volume(Value& volume, Allocator& allocator) {
  Value* spec = json::find(volume, "spec");
  if (spec == nullptr || !spec->IsObject()) return;
  json::set_default(*spec, "persistentVolumeReclaimPolicy", "Retain", allocator);
  json::set_default(*spec, "volumeMode", "Filesystem", allocator);
}

void default_persistent_volume_claim(Value& claim, Allocator& allocator) {
  Value* spec = json::find(claim, "spec");
  if (spec == nullptr || !spec->IsObject()) return;
  json::set_default(*spec, "volumeMode", "Filesystem", allocator);
}

void default_custom_resource_definition(Value& definition, Allocator& allocator) {
  Value* spec = json::find(definition, "spec");
  if (spec == nullptr || !spec->IsObject()) return;
  Value& names = json::child(*spec, "names", allocator);
  std::string lower(json::text(names, "kind"));
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  if (!lower.empty()) {
    json::set_default(names, "singular", lower, allocator);
    json::set_default(names, "listKind", std::string(json::text(names, "kind")) + "List",
                      allocator);
  }
  json::set_default(json::child(*spec, "conversion", allocator), "strategy", "None", allocator);
}

}  // namespace lookout::apiserver::registry
