#include "cmd/server_table.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "lookout/api/error.h"
#include "lookout/base/ascii.h"
#include "lookout/rest/discovery.h"

namespace lookout::cmd {
namespace {

constexpr const char* kAccept =
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/"
    "json;as=Table;v=v1beta1;g=meta.k8s.io,"
    "application/json";

std::string path_of(const api::Resource& resource, const std::string& ns, const std::string& name) {
  std::string out = resource.root_path();
  if (!ns.empty()) out += "/namespaces/" + base::percent_encode(ns);
  out += "/" + resource.plural;
  if (!name.empty()) out += "/" + base::percent_encode(name);
  return out;
}

}  // namespace

ServerTable::ServerTable(const rest::Client& client, const api::Resource& resource,
                         const std::string& ns, const SelectionFlags& selection)
    : client_(client),
      resource_(resource),
      with_namespace_(resource.namespaced && selection.all_namespaces) {
  const std::string path = path_of(resource, ns, selection.name);
  if (!selection.name.empty()) {
    add_page(rest::get_json(client, path, {}, kAccept));
    return;
  }
  std::string continue_token;
  do {
    std::string query = fmt::format("?limit={}", kPageSize);
    const auto add = [&](std::string_view key, const std::string& value) {
      if (!value.empty()) query += fmt::format("&{}={}", key, base::percent_encode(value));
    };
    add("labelSelector", selection.label_selector);
    add("fieldSelector", selection.field_selector);
    add("continue", continue_token);
    const auto answer = rest::get_json(client, path + query, {}, kAccept);
    add_page(answer);
    continue_token = answer["metadata"]["continue"].as_string();
  } while (!continue_token.empty());
}

std::string ServerTable::text() const {
  std::vector<Row> all{names_};
  if (with_namespace_) all.front().insert(all.front().begin(), "NAMESPACE");
  all.insert(all.end(), rows_.begin(), rows_.end());
  return align(all);
}

void ServerTable::add_page(const api::Object& answer) {
  if (answer.kind() == "Table" && answer.api_version().starts_with("meta.k8s.io/")) {
    add_table(answer);
  } else if (answer["items"].is_array()) {
    for (const api::Value item : answer["items"].elements())
      add_object(api::Object::parse(item.to_json()));
  } else if (answer.kind() == resource_.kind) {
    add_object(answer);
  } else {
    throw api::DecodeError(fmt::format("the answer has neither a table nor {}", resource_.plural));
  }
}

void ServerTable::add_table(const api::Object& table) {
  // Servers send the columns only with the first page.
  std::vector<bool> shown;
  Row names;
  for (const api::Value column : table["columnDefinitions"].elements()) {
    const bool always = column["priority"].as_int() == 0;
    shown.push_back(always);
    if (always) names.push_back(heading(column["name"].as_string()));
  }
  if (!names.empty()) {
    names_ = std::move(names);
    shown_ = std::move(shown);
  }
  for (const api::Value row : table["rows"].elements()) {
    Row cells;
    if (with_namespace_) cells.emplace_back(row["object"]["metadata"]["namespace"].as_string());
    std::size_t i = 0;
    for (const api::Value cell : row["cells"].elements()) {
      if (i < shown_.size() && shown_[i]) cells.push_back(apiserver::cell_text(cell));
      ++i;
    }
    rows_.push_back(std::move(cells));
  }
}

void ServerTable::add_object(const api::Object& object) {
  if (!columns_) {
    columns_.emplace(resource_, client_);
    names_ = columns_->names();
  }
  Row cells = columns_->values(
      object, std::chrono::floor<std::chrono::microseconds>(std::chrono::system_clock::now()));
  if (with_namespace_) cells.insert(cells.begin(), std::string(object.ns()));
  rows_.push_back(std::move(cells));
}

}  // namespace lookout::cmd
