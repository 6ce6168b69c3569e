#include "cmd/columns.h"

#include <algorithm>
#include <cctype>
#include <string_view>
#include <utility>

#include "cmd/printable.h"
#include "lookout/api/status.h"

namespace lookout::cmd {
namespace {

api::Resource definitions() {
  return {"apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions",
          false};
}

/// The resource's version in the definition.
api::Value version_of(const api::Object& definition, const api::Resource& resource) {
  for (const api::Value version : definition["spec"]["versions"].elements()) {
    if (version["name"].as_string() == resource.version) return version;
  }
  return {};
}

bool is_builtin(const api::Resource& resource) {
  return api::find_builtin(resource.group, resource.version, resource.kind) != nullptr;
}

apiserver::TablePrinter printer_of(const api::Resource& resource, const rest::Client* client) {
  if (is_builtin(resource))
    return apiserver::TablePrinter::of_builtin(resource.group, resource.plural);
  if (client != nullptr) {
    try {
      const auto definition =
          client->resource(definitions()).find(resource.plural + "." + resource.group);
      return apiserver::TablePrinter::of_custom(version_of(definition, resource));
    } catch (const Error&) {
      // A user may read the objects without being allowed to read their definition.
    }
  }
  return apiserver::TablePrinter::of_custom({});
}

constexpr std::size_t kGap = 3;
/// With the gap, as in kubectl.
constexpr std::size_t kMinWidth = 6;

/// Removes control characters: cells contain untrusted text from objects.
Row for_terminal(Row row) {
  for (std::string& cell : row) cell = printable(std::move(cell));
  return row;
}

void widen(std::vector<std::size_t>& widths, const Row& row) {
  widths.resize(std::max(widths.size(), row.size()));
  for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], width_of(row[i]));
}

std::string padded(const Row& row, const std::vector<std::size_t>& widths) {
  std::string out;
  for (std::size_t i = 0; i + 1 < row.size(); ++i)
    out += row[i] + std::string(std::max(widths[i] + kGap, kMinWidth) - width_of(row[i]), ' ');
  return out + (row.empty() ? "" : row.back()) + "\n";
}

/// The usual width of a column.
std::size_t usual_width(std::string_view column) {
  if (column == "EVENT") return std::string_view("MODIFIED").size();
  if (column == "NAMESPACE") return std::string_view("kube-system").size();
  if (column == "STATUS") return std::string_view("ContainerCreating").size();
  if (column == "NAME") return 28;
  if (column == "TYPE") return std::string_view("LoadBalancer").size();
  if (column == "CLUSTER-IP") return std::string_view("255.255.255.255").size();
  return column.size();
}

}  // namespace

Columns::Columns(const api::Resource& resource) : printer_(printer_of(resource, nullptr)) {}

Columns::Columns(const api::Resource& resource, const rest::Client& client)
    : printer_(printer_of(resource, &client)) {}

Row Columns::names() const {
  Row out = printer_.columns();
  for (std::string& name : out) name = heading(name);
  return out;
}

Row Columns::values(const api::Object& object, api::Time now) const {
  return printer_.cells(object, now);
}

std::string heading(std::string_view column) {
  std::string out(column);
  for (char& c : out) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return out;
}

std::string align(std::vector<Row> rows) {
  std::vector<std::size_t> widths;
  for (auto& row : rows) {
    row = for_terminal(std::move(row));
    widen(widths, row);
  }
  std::string out;
  for (const auto& row : rows) out += padded(row, widths);
  return out;
}

std::string StreamingTable::line(Row row) {
  row = for_terminal(std::move(row));
  if (widths_.empty()) {
    for (const auto& name : row) widths_.push_back(usual_width(name));
  }
  widen(widths_, row);
  return padded(row, widths_);
}

}  // namespace lookout::cmd
