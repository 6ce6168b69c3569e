// The rows of pods and workloads.
#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "apiserver/tables/rows.h"

namespace lookout::apiserver::tables {
namespace {

using api::Object;
using api::Value;

bool is_restartable(Value init_container) {
  return init_container["restartPolicy"].as_string() == "Always";
}

Value init_container_named(Value containers, std::string_view name) {
  for (const Value container : containers.elements()) {
    if (container["name"].as_string() == name) return container;
  }
  return {};
}

/// The later of two points in time, either of which may be missing.
std::optional<api::Time> later(std::optional<api::Time> time, Value status) {
  const Value finished = status["lastState"]["terminated"]["finishedAt"];
  return std::max(time, api::parse_time(finished.as_string()));
}

/// The state of a pod's containers, as `kubectl get pods` prints it.
struct PodSummary {
  std::string status;
  std::int64_t restarts = 0;
  std::optional<api::Time> last_restart;
  std::size_t ready = 0;
  std::size_t total = 0;
};

std::string end_of(Value terminated) {
  if (const auto reason = terminated["reason"].as_string(); !reason.empty())
    return std::string(reason);
  if (const auto signal = terminated["signal"].as_int(); signal != 0)
    return fmt::format("Signal:{}", signal);
  return fmt::format("ExitCode:{}", terminated["exitCode"].as_int());
}

/// Evaluates the init containers; true if one of them is still running.
bool summarize_initialization(const Object& pod, PodSummary& summary,
                              std::int64_t& sidecar_restarts,
                              std::optional<api::Time>& last_sidecar_restart) {
  const Value containers = pod["spec"]["initContainers"];
  std::size_t index = 0;
  for (const Value status : pod["status"]["initContainerStatuses"].elements()) {
    const bool restartable =
        is_restartable(init_container_named(containers, status["name"].as_string()));
    summary.restarts += status["restartCount"].as_int();
    summary.last_restart = later(summary.last_restart, status);
    if (restartable) {
      sidecar_restarts += status["restartCount"].as_int();
      last_sidecar_restart = later(last_sidecar_restart, status);
    }
    const Value terminated = status["state"]["terminated"];
    const Value waiting = status["state"]["waiting"];
    ++index;
    if (terminated.exists() && terminated["exitCode"].as_int() == 0) continue;
    if (restartable && status["started"].as_bool()) {
      if (status["ready"].as_bool()) ++summary.ready;
      continue;
    }
    const auto reason = waiting["reason"].as_string();
    if (terminated.exists()) {
      summary.status = "Init:" + end_of(terminated);
    } else if (!reason.empty() && reason != "PodInitializing") {
      summary.status = fmt::format("Init:{}", reason);
    } else {
      summary.status = fmt::format("Init:{}/{}", index - 1, containers.size());
    }
    return true;
  }
  return false;
}

/// Evaluates the containers in reverse order, so that the first one takes precedence.
void summarize_containers(const Object& pod, PodSummary& summary) {
  std::vector<Value> statuses;
  for (const Value status : pod["status"]["containerStatuses"].elements())
    statuses.push_back(status);
  bool running = false;
  std::string error;
  for (auto at = statuses.rbegin(); at != statuses.rend(); ++at) {
    const Value status = *at;
    summary.restarts += status["restartCount"].as_int();
    summary.last_restart = later(summary.last_restart, status);
    const Value terminated = status["state"]["terminated"];
    const auto reason = status["state"]["waiting"]["reason"].as_string();
    if (!reason.empty()) {
      summary.status = reason;
    } else if (terminated.exists()) {
      summary.status = end_of(terminated);
      if (terminated["exitCode"].as_int() != 0) error = summary.status;
    } else if (status["ready"].as_bool() && status["state"]["running"].exists()) {
      running = true;
      ++summary.ready;
    }
  }
  if (summary.status != "Completed") return;
  if (running && is_condition_true(pod["status"]["conditions"], "Ready")) {
    summary.status = "Running";
  } else if (!error.empty()) {
    summary.status = error;
  } else if (running) {
    summary.status = "NotReady";
  }
}

PodSummary summarize(const Object& pod) {
  const Value status = pod["status"];
  const auto phase = status["phase"].as_string();
  const auto reason = status["reason"].as_string();
  PodSummary summary;
  summary.status = or_else(status["reason"], phase);
  for (const Value condition : status["conditions"].elements()) {
    if (condition["type"].as_string() == "PodScheduled" &&
        condition["reason"].as_string() == "SchedulingGated")
      summary.status = "SchedulingGated";
  }
  summary.total = pod["spec"]["containers"].size();
  for (const Value container : pod["spec"]["initContainers"].elements()) {
    if (is_restartable(container)) ++summary.total;
  }
  std::int64_t sidecar_restarts = 0;
  std::optional<api::Time> last_sidecar_restart;
  const bool initializing =
      summarize_initialization(pod, summary, sidecar_restarts, last_sidecar_restart);
  if (!initializing || is_condition_true(status["conditions"], "Initialized")) {
    summary.restarts = sidecar_restarts;
    summary.last_restart = last_sidecar_restart;
    summarize_containers(pod, summary);
  }
  if (pod["metadata"]["deletionTimestamp"].exists()) {
    const bool ended = phase == "Failed" || phase == "Succeeded";
    if (reason == "NodeLost") {
      summary.status = "Unknown";
    } else if (!ended) {
      summary.status = "Terminating";
    }
  }
  return summary;
}

std::string readiness_gates(const Object& pod) {
  const Value gates = pod["spec"]["readinessGates"];
  if (gates.empty()) return "<none>";
  std::size_t open = 0;
  for (const Value gate : gates.elements()) {
    if (is_condition_true(pod["status"]["conditions"], gate["conditionType"].as_string())) ++open;
  }
  return fmt::format("{}/{}", open, gates.size());
}

void containers_of(Value containers, Cells& cells) {
  cells.text(container_names(containers));
  cells.text(container_images(containers));
}

Value template_containers(const Object& object) {
  return object["spec"]["template"]["spec"]["containers"];
}

void replicas_of(const Object& object, Cells& cells) {
  cells.text(object.name());
  cells.number(object["spec"]["replicas"].as_int());
  cells.number(object["status"]["replicas"].as_int());
  cells.number(object["status"]["readyReplicas"].as_int());
  cells.age(created(object));
  containers_of(template_containers(object), cells);
}

std::string ready_of_desired(const Object& object) {
  return fmt::format("{}/{}", object["status"]["readyReplicas"].as_int(),
                     object["spec"]["replicas"].as_int());
}

std::string job_status(const Object& job) {
  const Value conditions = job["status"]["conditions"];
  if (is_condition_true(conditions, "Complete")) return "Complete";
  if (is_condition_true(conditions, "Failed")) return "Failed";
  if (job["metadata"]["deletionTimestamp"].exists()) return "Terminating";
  for (const char* type : {"Suspended", "FailureTarget", "SuccessCriteriaMet"}) {
    if (is_condition_true(conditions, type)) return type;
  }
  return "Running";
}

std::string job_completions(const Object& job) {
  const auto succeeded = job["status"]["succeeded"].as_int();
  if (const auto completions = job["spec"]["completions"].to_int())
    return fmt::format("{}/{}", succeeded, *completions);
  const auto parallelism = job["spec"]["parallelism"].as_int();
  return parallelism > 1 ? fmt::format("{}/1 of {}", succeeded, parallelism)
                         : fmt::format("{}/1", succeeded);
}

std::string job_duration(const Object& job, api::Time now) {
  const auto start = api::parse_time(job["status"]["startTime"].as_string());
  if (!start) return "";
  const auto end = api::parse_time(job["status"]["completionTime"].as_string()).value_or(now);
  return api::format_age(std::chrono::duration_cast<std::chrono::seconds>(end - *start));
}

/// The current value and the target of a metric.
std::string metric_text(Value spec, Value status) {
  constexpr std::string_view kUnknown = "<unknown>";
  const auto type = spec["type"].as_string();
  const auto amount = [](Value value, std::string_view otherwise = "<nil>") {
    return value.exists() ? quantity_text(value) : std::string(otherwise);
  };
  // A current value of another kind than the target is ignored.
  const auto amount_of = [&](const char* source, const char* name) {
    const Value one = status[source];
    return amount(one["current"][name], one.exists() ? "<nil>" : kUnknown);
  };
  if (type == "External" || type == "Object") {
    const char* source = type == "External" ? "external" : "object";
    const Value target = spec[source]["target"];
    if (target["averageValue"].exists()) {
      return fmt::format("{}/{} (avg)", amount(status[source]["current"]["averageValue"], kUnknown),
                         amount(target["averageValue"]));
    }
    return fmt::format("{}/{}", amount_of(source, "value"), amount(target["value"]));
  }
  if (type == "Pods") {
    return fmt::format("{}/{}", amount_of("pods", "averageValue"),
                       amount(spec["pods"]["target"]["averageValue"]));
  }
  if (type != "Resource" && type != "ContainerResource") return "<unknown type>";
  const char* source = type == "Resource" ? "resource" : "containerResource";
  const Value target = spec[source]["target"];
  const Value current = status[source]["current"];
  const auto name = spec[source]["name"].as_string();
  if (target["averageValue"].exists()) {
    return fmt::format("{}: {}/{}", name, amount_of(source, "averageValue"),
                       amount(target["averageValue"]));
  }
  const auto percent = [](Value value, std::string_view otherwise) {
    const auto number = value["averageUtilization"].to_int();
    return number ? fmt::format("{}%", *number) : std::string(otherwise);
  };
  return fmt::format("{}: {}/{}", name, percent(current, "<unknown>"), percent(target, "<auto>"));
}

}  // namespace

void pod_row(const Object& pod, Cells& cells) {
  const PodSummary summary = summarize(pod);
  const auto phase = pod["status"]["phase"].as_string();
  cells.text(pod.name());
  cells.text(fmt::format("{}/{}", summary.ready, summary.total));
  cells.text(summary.status);
  std::string restarts = std::to_string(summary.restarts);
  if (summary.restarts != 0 && summary.last_restart) {
    const auto since =
        std::chrono::duration_cast<std::chrono::seconds>(cells.now() - *summary.last_restart);
    restarts += fmt::format(" ({} ago)", api::format_age(since));
  }
  cells.text(restarts);
  cells.age(created(pod));
  const Value first_ip = pod["status"]["podIPs"][0]["ip"];
  cells.text(or_else(first_ip, or_else(pod["status"]["podIP"], "<none>")));
  cells.text(or_else(pod["spec"]["nodeName"], "<none>"));
  cells.text(or_else(pod["status"]["nominatedNodeName"], "<none>"));
  cells.text(readiness_gates(pod));
  if (phase == "Succeeded") {
    cells.set_conditions(R"([{"type":"Completed","status":"True","reason":"Succeeded",)"
                         R"("message":"The pod has completed successfully."}])");
  } else if (phase == "Failed") {
    cells.set_conditions(
        R"([{"type":"Completed","status":"True","reason":"Failed","message":"The pod failed."}])");
  }
}

void pod_template_row(const Object& object, Cells& cells) {
  cells.text(object.name());
  containers_of(object["template"]["spec"]["containers"], cells);
  cells.text(format_labels(object["template"]["metadata"]["labels"]));
}

void replication_controller_row(const Object& object, Cells& cells) {
  replicas_of(object, cells);
  cells.text(format_labels(object["spec"]["selector"]));
}

void replica_set_row(const Object& object, Cells& cells) {
  replicas_of(object, cells);
  cells.text(format_selector(object["spec"]["selector"]));
}

void deployment_row(const Object& object, Cells& cells) {
  cells.text(object.name());
  cells.text(ready_of_desired(object));
  cells.number(object["status"]["updatedReplicas"].as_int());
  cells.number(object["status"]["availableReplicas"].as_int());
  cells.age(created(object));
  containers_of(template_containers(object), cells);
  cells.text(selector_text(object["spec"]["selector"]));
}

void stateful_set_row(const Object& object, Cells& cells) {
  cells.text(object.name());
  cells.text(ready_of_desired(object));
  cells.age(created(object));
  containers_of(template_containers(object), cells);
}

void daemon_set_row(const Object& object, Cells& cells) {
  cells.text(object.name());
  for (const char* count : {"desiredNumberScheduled", "currentNumberScheduled", "numberReady",
                            "updatedNumberScheduled", "numberAvailable"})
    cells.number(object["status"][count].as_int());
  cells.text(format_labels(object["spec"]["template"]["spec"]["nodeSelector"]));
  cells.age(created(object));
  containers_of(template_containers(object), cells);
  cells.text(format_selector(object["spec"]["selector"]));
}

void job_row(const Object& job, Cells& cells) {
  cells.text(job.name());
  cells.text(job_status(job));
  cells.text(job_completions(job));
  cells.text(job_duration(job, cells.now()));
  cells.age(created(job));
  containers_of(template_containers(job), cells);
  cells.text(format_selector(job["spec"]["selector"]));
}

void cron_job_row(const Object& object, Cells& cells) {
  const Value spec = object["spec"];
  const Value job = spec["jobTemplate"]["spec"];
  cells.text(object.name());
  cells.text(spec["schedule"].as_string());
  cells.text(spec["timeZone"].as_string("<none>"));
  // A boolean as text, or "<unset>".
  cells.text(spec["suspend"].is_bool() ? (spec["suspend"].as_bool() ? "True" : "False")
                                       : "<unset>");
  cells.number(static_cast<std::int64_t>(object["status"]["active"].size()));
  const Value last = object["status"]["lastScheduleTime"];
  cells.text(last.is_string() ? cells.age_text(last) : "<none>");
  cells.age(created(object));
  containers_of(job["template"]["spec"]["containers"], cells);
  cells.text(format_selector(job["selector"]));
}

void disruption_budget_row(const Object& object, Cells& cells) {
  cells.text(object.name());
  for (const char* limit : {"minAvailable", "maxUnavailable"}) {
    const Value value = object["spec"][limit];
    cells.text(value.exists() && !value.is_null() ? int_or_text(value) : "N/A");
  }
  cells.number(object["status"]["disruptionsAllowed"].as_int());
  cells.age(created(object));
}

void autoscaler_row(const Object& object, Cells& cells) {
  const Value spec = object["spec"];
  const Value reference = spec["scaleTargetRef"];
  cells.text(object.name());
  cells.text(fmt::format("{}/{}", reference["kind"].as_string(), reference["name"].as_string()));
  Shortened metrics(2, ", ");
  std::size_t index = 0;
  for (const Value metric : spec["metrics"].elements())
    metrics.add(metric_text(metric, object["status"]["currentMetrics"][index++]));
  cells.text(metrics.text("<none>"));
  const auto least = spec["minReplicas"].to_int();
  cells.text(least ? std::to_string(*least) : "<unset>");
  cells.number(spec["maxReplicas"].as_int());
  cells.number(object["status"]["currentReplicas"].as_int());
  cells.age(created(object));
}

void controller_revision_row(const Object& object, Cells& cells) {
  cells.text(object.name());
  std::string controller = "<none>";
  for (const Value owner : object["metadata"]["ownerReferences"].elements()) {
    if (!owner["controller"].as_bool()) continue;
    const auto gvk =
        api::GroupVersionKind::from(owner["apiVersion"].as_string(), owner["kind"].as_string());
    controller = gvk.group.empty() ? gvk.kind : gvk.kind + "." + gvk.group;
    std::transform(controller.begin(), controller.end(), controller.begin(), [](char c) {
      return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    });
    controller += fmt::format("/{}", owner["name"].as_string());
    break;
  }
  cells.text(controller);
  cells.number(object["revision"].as_int());
  cells.age(created(object));
}

void scale_row(const Object& object, Cells& cells) {
  cells.text(object.name());
  cells.number(object["spec"]["replicas"].as_int());
  cells.number(object["status"]["replicas"].as_int());
  cells.age(created(object));
}

}  // namespace lookout::apiserver::tables
