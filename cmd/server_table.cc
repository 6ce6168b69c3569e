#include "cmd/server_table.h"

#include <fmt/format.h>

#include <chrono>
#include <utility>

#include "cmd/object_name.h"
#include "lookout/api/error.h"
#include "lookout/base/ascii.h"
#include "lookout/rest/discovery.h"

namespace lookout::cmd {
namespace {

constexpr const char* kAccept =
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/"
    "json;as=Table;v=v1beta1;g=meta.k8s.io,"
    "application/json";

}  // namespace

ServerTable::ServerTable(const rest::Client& client, api::Resource resource, std::string ns,
                         TableOptions options)
    : client_(client), resource_(std::move(resource)), ns_(std::move(ns)), options_(options) {}

std::string ServerTable::path() const {
  std::string out = resource_.root_path();
  if (!ns_.empty()) out += "/namespaces/" + base::percent_encode(ns_);
  return out + "/" + resource_.plural;
}

void ServerTable::add_one(const std::string& name) {
  const std::string query = options_.sorting == nullptr ? "" : "?includeObject=Object";
  add_page(rest::get_json(client_, path() + "/" + base::percent_encode(name) + query, {}, kAccept));
}

void ServerTable::add_list(const std::string& label_selector, const std::string& field_selector) {
  const std::size_t before = rows_.size();
  try {
    add_pages(label_selector, field_selector);
  } catch (...) {
    rows_.resize(before);
    if (options_.sorting != nullptr) keys_.resize(before);
    throw;
  }
}

void ServerTable::add_pages(const std::string& label_selector, const std::string& field_selector) {
  std::string continue_token;
  do {
    std::string query;
    const auto add = [&](std::string_view key, const std::string& value) {
      if (value.empty()) return;
      query += fmt::format("{}{}={}", query.empty() ? "?" : "&", key, base::percent_encode(value));
    };
    add("limit", options_.page_size > 0 ? std::to_string(options_.page_size) : "");
    add("labelSelector", label_selector);
    add("fieldSelector", field_selector);
    add("continue", continue_token);
    if (options_.sorting != nullptr) add("includeObject", "Object");
    const auto answer = rest::get_json(client_, path() + query, {}, kAccept);
    add_page(answer);
    continue_token = answer["metadata"]["continue"].as_string();
  } while (!continue_token.empty());
}

std::string ServerTable::text() const {
  std::vector<Row> all;
  if (!options_.no_headers) {
    all.push_back(names_);
    if (options_.with_namespace) all.front().insert(all.front().begin(), "NAMESPACE");
    options_.labels.add_names(all.front());
  }
  if (options_.sorting != nullptr) {
    for (const std::size_t i : options_.sorting->order(keys_)) all.push_back(rows_[i]);
  } else {
    all.insert(all.end(), rows_.begin(), rows_.end());
  }
  return align(std::move(all));
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
    const bool shows = options_.wide || column["priority"].as_int() == 0;
    shown.push_back(shows);
    if (!shows) continue;
    // As in kubectl.
    if (column["format"].as_string() == "name") name_column_ = names.size();
    names.push_back(heading(column["name"].as_string()));
  }
  if (!names.empty()) {
    names_ = std::move(names);
    shown_ = std::move(shown);
  }
  for (const api::Value row : table["rows"].elements()) {
    Row cells;
    std::size_t i = 0;
    for (const api::Value cell : row["cells"].elements()) {
      if (i < shown_.size() && shown_[i]) cells.push_back(apiserver::cell_text(cell));
      ++i;
    }
    add_row(std::move(cells), row["object"]["metadata"]["namespace"].as_string(), row["object"]);
  }
}

void ServerTable::add_object(const api::Object& object) {
  if (!columns_) {
    columns_.emplace(resource_, client_);
    names_ = columns_->names();
  }
  add_row(columns_->values(object, std::chrono::floor<std::chrono::microseconds>(
                                       std::chrono::system_clock::now())),
          object.ns(), object.body());
}

void ServerTable::add_row(Row cells, std::string_view ns, api::Value object) {
  if (options_.with_kind && name_column_ < cells.size())
    cells[name_column_] = name_of(resource_, cells[name_column_]);
  if (options_.with_namespace) cells.emplace(cells.begin(), ns);
  options_.labels.add_values(cells, object["metadata"]["labels"]);
  rows_.push_back(std::move(cells));
  if (options_.sorting != nullptr) keys_.push_back(options_.sorting->key(object));
}

}  // namespace lookout::cmd
