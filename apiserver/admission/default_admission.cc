#include "apiserver/admission/default_admission.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

#include "apiserver/admission/runtime_class.h"
#include "apiserver/admission/warnings.h"
#include "apiserver/json.h"
#include "apiserver/names.h"
#include "apiserver/resources/priority_admission.h"
#include "lookout/api/quantity.h"
#include "lookout/api/status.h"

namespace lookout::apiserver::admission {
namespace {

using api::Value;
using resources::ServedResourcePtr;
using Operation = resources::Write::Operation;

constexpr const char* kStorageClass = "volume.beta.kubernetes.io/storage-class";
constexpr const char* kIngressClass = "kubernetes.io/ingress.class";
constexpr std::string_view kSecurityLabels = "pod-security.kubernetes.io/";

/// The resources whose objects have a template of pods.
constexpr std::array<std::pair<std::string_view, std::string_view>, 8> kTemplates = {{
    {"", "replicationcontrollers"},
    {"", "podtemplates"},
    {"apps", "replicasets"},
    {"apps", "deployments"},
    {"apps", "statefulsets"},
    {"apps", "daemonsets"},
    {"batch", "jobs"},
    {"batch", "cronjobs"},
}};

Value template_of(const Object& object) {
  if (object.kind() == "PodTemplate") return object["template"];
  const Value spec = object["spec"];
  return object.kind() == "CronJob" ? spec["jobTemplate"]["spec"]["template"] : spec["template"];
}

bool has_storage_class(const Object& claim) {
  return claim["metadata"]["annotations"][kStorageClass].exists() ||
         claim["spec"]["storageClassName"].is_string();
}

std::string storage_class_of(const Object& claim) {
  const Value annotation = claim["metadata"]["annotations"][kStorageClass];
  return std::string(annotation.exists() ? annotation.as_string()
                                         : claim["spec"]["storageClassName"].as_string());
}

bool has_ingress_class(const Object& ingress) {
  return ingress["metadata"]["annotations"][kIngressClass].exists() ||
         ingress["spec"]["ingressClassName"].is_string();
}

api::Quantity storage_of(const Object& claim) {
  return api::Quantity::parse(claim["spec"]["resources"]["requests"]["storage"].as_string())
      .value_or(api::Quantity());
}

/// The object may come from a cache, as in kube-apiserver.
Awaitable<Object> look_up(ServedResourcePtr resource, std::string name) {
  Object found;
  if (name.empty()) co_return found;
  found = co_await resource->storage->get(name, 1);
  if (!found) found = co_await resource->storage->get(name);
  co_return found;
}

/// The name of the class with one of these annotations: the newest or, if several are equally old,
/// the first by name. Empty if there is none.
Awaitable<std::string> default_class(ServedResourcePtr classes,
                                     std::vector<std::string_view> annotations) {
  storage::ListOptions options;
  options.match = storage::VersionMatch::kNotOlderThan;
  storage::ListResult list = co_await classes->storage->list("", true, std::move(options));
  const std::vector<Object> all = co_await storage::read_all(std::move(list));
  Object out;
  for (const Object& one : all) {
    const Value own = one["metadata"]["annotations"];
    const bool is_default =
        std::any_of(annotations.begin(), annotations.end(),
                    [&](std::string_view name) { return own[name].as_string() == "true"; });
    // The list is sorted by name.
    if (is_default && (!out || one["metadata"]["creationTimestamp"].as_string() >
                                   out["metadata"]["creationTimestamp"].as_string()))
      out = one;
  }
  co_return std::string(out.name());
}

Object with_class(const Object& object, const char* field, const std::string& name) {
  json::Document document = object.to_document();
  auto& allocator = document.GetAllocator();
  json::set(json::child(document, "spec", allocator), field, name, allocator);
  return Object::from(document);
}

bool has_security_labels(const Object& ns) {
  const auto labels = ns.labels().members();
  return std::any_of(labels.begin(), labels.end(),
                     [](const auto& label) { return label.name.starts_with(kSecurityLabels); });
}

}  // namespace

DefaultAdmission::Topic DefaultAdmission::topic_of(const api::Resource& type,
                                                   std::string_view subresource) {
  const auto is = [&](std::string_view group, std::string_view plural) {
    return type.group == group && type.plural == plural;
  };
  if (is("", "pods") && (subresource.empty() || subresource == "ephemeralcontainers"))
    return Topic::kPod;
  if (!subresource.empty()) return Topic::kOther;
  if (is("", "persistentvolumeclaims")) return Topic::kClaim;
  if (is("", "namespaces")) return Topic::kNamespace;
  if (is("networking.k8s.io", "ingresses")) return Topic::kIngress;
  if (is("scheduling.k8s.io", "priorityclasses")) return Topic::kPriorityClass;
  const bool has_template = std::any_of(kTemplates.begin(), kTemplates.end(),
                                        [&](const auto& one) { return is(one.first, one.second); });
  return has_template ? Topic::kTemplate : Topic::kOther;
}

Awaitable<PodSecurity> read_pod_security(std::shared_ptr<const resources::ResourceTable> table,
                                         resources::Target target, std::string subresource) {
  using Topic = DefaultAdmission::Topic;
  const Topic topic = DefaultAdmission::topic_of(target.resource->type, subresource);
  if (topic != Topic::kPod && topic != Topic::kTemplate) co_return PodSecurity();
  ServedResourcePtr namespaces = table->find("", "v1", "namespaces");
  const Object ns = co_await look_up(std::move(namespaces), target.ns);
  co_return pod_security_of(ns.labels());
}

Awaitable<Object> with_topology_labels(std::shared_ptr<const resources::ResourceTable> table,
                                       std::string node, Object object) {
  ServedResourcePtr nodes = table->find("", "v1", "nodes");
  const Object found = co_await look_up(std::move(nodes), std::move(node));
  json::Document document;
  for (const char* name : {"topology.kubernetes.io/region", "topology.kubernetes.io/zone"}) {
    const Value label = found.labels()[name];
    if (!label.exists() || object.labels()[name].exists()) continue;
    if (document.IsNull()) document = object.to_document();
    auto& allocator = document.GetAllocator();
    json::Value& metadata = json::child(document, "metadata", allocator);
    json::set(json::child(metadata, "labels", allocator), name, label.as_string(), allocator);
  }
  co_return document.IsNull() ? object : Object::from(document);
}

DefaultAdmission::DefaultAdmission(resources::Admission& next,
                                   std::shared_ptr<const resources::ResourceTable> table,
                                   resources::Target target, std::string_view subresource,
                                   Object wanted, PodSecurity security,
                                   std::vector<std::string>& warnings)
    : next_(next),
      table_(std::move(table)),
      target_(std::move(target)),
      topic_(topic_of(target_.resource->type, subresource)),
      wanted_(std::move(wanted)),
      security_(std::move(security)),
      warnings_(warnings) {}

bool DefaultAdmission::has_work(Operation operation) const {
  if (operation == Operation::kDelete) return false;
  const bool is_new = operation == Operation::kCreate;
  // If the object is unknown, any plugin may apply.
  const bool unknown = is_new && !wanted_;
  const Value spec = wanted_["spec"];
  switch (topic_) {
    case Topic::kPod:
      return !security_.enforce.allows_everything() || !security_.warn.allows_everything() ||
             unknown || spec["runtimeClassName"].exists() || spec["overhead"].exists() ||
             (is_new && spec["nodeName"].exists());
    case Topic::kTemplate:
      return !security_.warn.allows_everything();
    case Topic::kClaim:
      return !is_new || unknown || !has_storage_class(wanted_);
    case Topic::kIngress:
      return unknown || (is_new && !has_ingress_class(wanted_));
    case Topic::kPriorityClass:
      return !is_new || unknown || wanted_["globalDefault"].as_bool();
    case Topic::kNamespace:
      return !is_new || unknown || has_security_labels(wanted_);
    case Topic::kOther:
      break;
  }
  return false;
}

bool DefaultAdmission::concerns(Operation operation) const {
  return has_work(operation) || next_.concerns(operation);
}

Awaitable<Object> DefaultAdmission::mutate(resources::Write write, Normalize normalize) {
  const bool is_new = write.operation == Operation::kCreate;
  if (is_new) {
    Object object = write.object;
    write.object = co_await complete(std::move(object));
  }
  if (!next_.concerns(write.operation)) co_return write.object;
  // A webhook may change the class, or remove the defaults.
  if (is_new) {
    write.again = [this, earlier = std::move(write.again)](Object object) {
      return complete_again(earlier, std::move(object));
    };
  }
  co_return co_await next_.mutate(std::move(write), std::move(normalize));
}

Awaitable<Object> DefaultAdmission::complete_again(Completion earlier, Object object) const {
  if (earlier) object = co_await earlier(std::move(object));
  co_return co_await complete(std::move(object));
}

Awaitable<Object> DefaultAdmission::complete(Object object) const {
  if (topic_ == Topic::kPod) {
    if (object["spec"]["runtimeClassName"].exists()) {
      const Object runtime_class = co_await runtime_class_of(object);
      object = with_runtime_class(object, runtime_class);
    }
    std::string node(object["spec"]["nodeName"].as_string());
    co_return co_await with_topology_labels(table_, std::move(node), std::move(object));
  }
  ServedResourcePtr classes;
  std::vector<std::string_view> annotations;
  const char* field = nullptr;
  if (topic_ == Topic::kClaim && !has_storage_class(object)) {
    classes = table_->find("storage.k8s.io", "v1", "storageclasses");
    annotations = {"storageclass.kubernetes.io/is-default-class",
                   "storageclass.beta.kubernetes.io/is-default-class"};
    field = "storageClassName";
  } else if (topic_ == Topic::kIngress && !has_ingress_class(object)) {
    classes = table_->find("networking.k8s.io", "v1", "ingressclasses");
    annotations = {"ingressclass.kubernetes.io/is-default-class"};
    field = "ingressClassName";
  }
  if (classes == nullptr) co_return object;
  const std::string name = co_await default_class(std::move(classes), std::move(annotations));
  co_return name.empty() ? object : with_class(object, field, name);
}

Awaitable<void> DefaultAdmission::validate(resources::Write write) {
  resources::Write same = write;
  co_await check(std::move(same));
  if (next_.concerns(write.operation)) co_await next_.validate(std::move(write));
}

Awaitable<void> DefaultAdmission::check(resources::Write write) {
  const bool is_new = write.operation == Operation::kCreate;
  switch (topic_) {
    case Topic::kPod:
      check_pod(write);
      if (is_new) {
        const Object runtime_class = co_await runtime_class_of(write.object);
        check_runtime_class(write.object, runtime_class);
      }
      break;
    case Topic::kTemplate: {
      const Value pod = template_of(write.object);
      if (pod.exists()) warn_of(pod["metadata"], pod["spec"]);
      break;
    }
    case Topic::kClaim:
      if (!is_new) co_await check_growth(std::move(write));
      break;
    case Topic::kPriorityClass: {
      ServedResourcePtr classes = target_.resource;
      Object priority_class = write.object;
      co_await resources::check_only_default(std::move(classes), std::move(priority_class), is_new);
      break;
    }
    case Topic::kNamespace:
      co_await check_namespace(std::move(write));
      break;
    case Topic::kIngress:
    case Topic::kOther:
      break;
  }
}

Awaitable<Object> DefaultAdmission::runtime_class_of(Object pod) const {
  ServedResourcePtr classes = table_->find("node.k8s.io", "v1", "runtimeclasses");
  std::string name(pod["spec"]["runtimeClassName"].as_string());
  co_return co_await look_up(std::move(classes), std::move(name));
}

Awaitable<void> DefaultAdmission::check_growth(resources::Write write) const {
  const Object& claim = write.object;
  if (storage_of(claim) <= storage_of(write.old)) co_return;
  const auto refuse = [&](std::string_view why) {
    throw StatusError::forbidden("", "persistentvolumeclaims", claim.name(), why);
  };
  if (write.old["status"]["phase"].as_string() != "Bound")
    refuse("Only bound persistent volume claims can be expanded");
  std::string name = storage_class_of(claim);
  Object storage_class;
  if (name == storage_class_of(write.old)) {
    ServedResourcePtr classes = table_->find("storage.k8s.io", "v1", "storageclasses");
    storage_class = co_await look_up(std::move(classes), std::move(name));
  }
  if (!storage_class["allowVolumeExpansion"].as_bool()) {
    refuse(
        "only dynamically provisioned pvc can be resized and the storageclass that provisions the "
        "pvc must support resize");
  }
}

void DefaultAdmission::check_pod(const resources::Write& write) {
  const Object& pod = write.object;
  if (write.operation == Operation::kUpdate && !changes_security(pod, write.old)) return;
  const std::vector<Violation> violations =
      violations_of(security_.enforce, pod["metadata"], pod["spec"]);
  if (!violations.empty()) {
    throw StatusError::forbidden(
        "", "pods", pod.name(),
        fmt::format("violates PodSecurity \"{}\": {}", security_.enforce.to_string(),
                    details_of(violations)));
  }
  warn_of(pod["metadata"], pod["spec"]);
}

Awaitable<void> DefaultAdmission::check_namespace(resources::Write write) {
  const Object& ns = write.object;
  const PodSecurity now = pod_security_of(ns.labels());
  const PodSecurity before = pod_security_of(write.old.labels());
  const bool is_new = write.operation == Operation::kCreate;
  if (!now.errors.empty() && (is_new || now.errors != before.errors))
    throw StatusError::invalid("", "Namespace", ns.name(), now.errors);
  const SecurityStandard& standard = now.enforce;
  if (is_new || standard == before.enforce || standard.allows_everything() ||
      (standard.minor == before.enforce.minor && standard.level <= before.enforce.level))
    co_return;
  ServedResourcePtr pods = table_->find("", "v1", "pods");
  std::string prefix = std::string(ns.name()) + "/";
  storage::ListOptions options;
  storage::ListResult list =
      co_await pods->storage->list(std::move(prefix), true, std::move(options));
  const std::vector<Object> all = co_await storage::read_all(std::move(list));
  for (std::string& warning : warnings_about_pods(ns.name(), standard, all))
    add_warning(std::move(warning), warnings_);
}

void DefaultAdmission::warn_of(Value metadata, Value spec) {
  const std::vector<Violation> violations = violations_of(security_.warn, metadata, spec);
  if (violations.empty()) return;
  add_warning(fmt::format("would violate PodSecurity \"{}\": {}", security_.warn.to_string(),
                          details_of(violations)),
              warnings_);
}

}  // namespace lookout::apiserver::admission
