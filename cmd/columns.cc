#include "cmd/columns.h"

#include <fmt/format.h>

#include <algorithm>

#include "lookout/api/apps/v1.h"
#include "lookout/api/core/v1.h"
#include "lookout/api/meta/v1.h"

namespace lookout::cmd {
namespace {

/// What kubectl calls the status of a pod: more telling than its phase.
std::string pod_status(const core::v1::Pod& pod) {
  const auto status = pod.status();
  std::string out(status.reason().empty() ? status.phase() : status.reason());
  for (const auto container : status.container_statuses()) {
    const auto waiting = container.state().waiting();
    const auto terminated = container.state().terminated();
    if (!waiting.reason().empty()) {
      out = waiting.reason();
    } else if (!terminated.reason().empty()) {
      out = terminated.reason();
    } else if (terminated) {
      out = fmt::format("ExitCode:{}", terminated.exit_code());
    }
  }
  if (pod.metadata().deletion_timestamp()) out = "Terminating";
  return out;
}

Row pod_row(const core::v1::Pod& pod) {
  std::size_t ready = 0;
  std::int64_t restarts = 0;
  for (const auto container : pod.status().container_statuses()) {
    if (container.ready()) ++ready;
    restarts += container.restart_count();
  }
  return {std::string(pod.name()), fmt::format("{}/{}", ready, pod.spec().containers().size()),
          pod_status(pod), std::to_string(restarts)};
}

Row deployment_row(const apps::v1::Deployment& deployment) {
  const auto status = deployment.status();
  return {std::string(deployment.name()),
          fmt::format("{}/{}", status.ready_replicas().value_or(0),
                      deployment.spec().replicas().value_or(1)),
          std::to_string(status.updated_replicas().value_or(0)),
          std::to_string(status.available_replicas().value_or(0))};
}

Row service_row(const core::v1::Service& service) {
  std::string ports;
  for (const auto port : service.spec().ports()) {
    ports += fmt::format("{}{}/{}", ports.empty() ? "" : ",", port.port(),
                         port.protocol().empty() ? "TCP" : port.protocol());
  }
  const auto or_none = [](std::string_view text) {
    return text.empty() ? std::string("<none>") : std::string(text);
  };
  return {std::string(service.name()),
          service.spec().type().empty() ? "ClusterIP" : std::string(service.spec().type()),
          or_none(service.spec().cluster_ip()), or_none(ports)};
}

Row node_row(const core::v1::Node& node) {
  std::string status = "Unknown";
  for (const auto condition : node.status().conditions()) {
    if (condition.type() == "Ready") status = condition.status() == "True" ? "Ready" : "NotReady";
  }
  if (node.spec().unschedulable().value_or(false)) status += ",SchedulingDisabled";
  return {std::string(node.name()), status,
          std::string(node.status().node_info().kubelet_version())};
}

struct KindColumns {
  std::string_view group;
  std::string_view kind;
  Row names;
  Row (*values)(const api::Object&);
};

const std::vector<KindColumns>& kind_columns() {
  static const std::vector<KindColumns> kColumns = {
      {"",
       "Pod",
       {"NAME", "READY", "STATUS", "RESTARTS", "AGE"},
       [](const api::Object& o) { return pod_row(core::v1::Pod(o)); }},
      {"apps",
       "Deployment",
       {"NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE"},
       [](const api::Object& o) { return deployment_row(apps::v1::Deployment(o)); }},
      {"",
       "Service",
       {"NAME", "TYPE", "CLUSTER-IP", "PORT(S)", "AGE"},
       [](const api::Object& o) { return service_row(core::v1::Service(o)); }},
      {"",
       "Node",
       {"NAME", "STATUS", "VERSION", "AGE"},
       [](const api::Object& o) { return node_row(core::v1::Node(o)); }},
      {"",
       "Namespace",
       {"NAME", "STATUS", "AGE"},
       [](const api::Object& o) {
         return Row{std::string(o.name()), std::string(core::v1::Namespace(o).status().phase())};
       }},
  };
  return kColumns;
}

const KindColumns* find(const api::Resource& resource) {
  for (const auto& columns : kind_columns()) {
    if (columns.kind == resource.kind && columns.group == resource.group) return &columns;
  }
  return nullptr;
}

constexpr std::size_t kGap = 3;

void widen(std::vector<std::size_t>& widths, const Row& row) {
  widths.resize(std::max(widths.size(), row.size()));
  for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
}

std::string padded(const Row& row, const std::vector<std::size_t>& widths) {
  std::string out;
  for (std::size_t i = 0; i + 1 < row.size(); ++i)
    out += fmt::format("{:<{}}", row[i], widths[i] + kGap);
  return out + (row.empty() ? "" : row.back()) + "\n";
}

/// Room for what a column holds mostly.
std::size_t usual_width(std::string_view column) {
  if (column == "EVENT") return std::string_view("MODIFIED").size();
  if (column == "NAMESPACE") return std::string_view("kube-system").size();
  if (column == "STATUS") return std::string_view("ContainerCreating").size();
  if (column == "NAME") return 28;
  return column.size();
}

}  // namespace

Row column_names(const api::Resource& resource) {
  const KindColumns* columns = find(resource);
  return columns == nullptr ? Row{"NAME", "AGE"} : columns->names;
}

Row column_values(const api::Resource& resource, const api::Object& object, api::Time now) {
  const KindColumns* columns = find(resource);
  Row row = columns == nullptr ? Row{std::string(object.name())} : columns->values(object);
  row.push_back(age_of(object, now));
  return row;
}

std::string age_of(const api::Object& object, api::Time now) {
  const auto created = object.metadata().creation_timestamp();
  if (!created) return "<unknown>";
  return api::format_age(std::chrono::duration_cast<std::chrono::seconds>(now - *created));
}

std::string align(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths;
  for (const auto& row : rows) widen(widths, row);
  std::string out;
  for (const auto& row : rows) out += padded(row, widths);
  return out;
}

std::string StreamingTable::line(const Row& row) {
  if (widths_.empty()) {
    for (const auto& name : row) widths_.push_back(usual_width(name));
  }
  widen(widths_, row);
  return padded(row, widths_);
}

}  // namespace lookout::cmd
