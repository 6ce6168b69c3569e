#include "apiserver/tables/printer.h"

#include <fmt/format.h>

#include <utility>

#include "apiserver/endpoints/output.h"
#include "lookout/api/detail/json_writer.h"
#include "lookout/api/detail/object_editor.h"

namespace lookout::apiserver::tables {
namespace {

using api::Object;
using api::Value;

void custom_cell(const Column& column, Value value, Cells& cells) {
  if (column.type == "string" && !value.is_null()) {
    if (value.is_string()) {
      cells.text(value.as_string());
    } else {
      cells.text(value.to_json());
    }
  } else if (column.type == "integer" && value.is_number()) {
    cells.number(value.to_int().value_or(static_cast<std::int64_t>(value.as_double())));
  } else if (column.type == "number" && value.is_number()) {
    cells.any(value);
  } else if (column.type == "boolean" && value.is_bool()) {
    cells.boolean(value.as_bool());
  } else if (column.type == "date" && value.is_string()) {
    const auto time = api::parse_time(value.as_string());
    if (time || value.as_string().empty()) {
      cells.age(value);
    } else {
      cells.text("<invalid>");
    }
  } else {
    cells.null();
  }
}

/// The columns of kinds without their own columns: name and creation time.
void default_row(const Object& object, Cells& cells) {
  cells.text(object.name());
  cells.any(created(object));
}

}  // namespace

std::shared_ptr<const Printer> Printer::of_builtin(std::string_view group,
                                                   std::string_view plural) {
  auto printer = std::make_shared<Printer>();
  auto columns = columns_of(group == "events.k8s.io" ? "" : group, plural);
  const AppendRow row = find_row(group, plural);
  if (columns && row != nullptr) {
    printer->columns_ = std::move(*columns);
    printer->row_ = row;
  } else {
    printer->columns_ = {name_column(), created_column()};
    printer->row_ = default_row;
  }
  return printer;
}

std::shared_ptr<const Printer> Printer::of_custom(Value version) {
  auto printer = std::make_shared<Printer>();
  printer->columns_.push_back(name_column());
  for (const Value column : version["additionalPrinterColumns"].elements()) {
    const std::string path(column["jsonPath"].as_string());
    Column& added = printer->columns_.emplace_back();
    added.name = column["name"].as_string();
    added.type = column["type"].as_string();
    added.format = column["format"].as_string();
    added.description = column["description"].as_string();
    if (added.description.empty())
      added.description = "Custom resource definition column (in JSONPath format): " + path;
    added.priority = static_cast<int>(column["priority"].as_int());
    printer->paths_.push_back(api::detail::JsonPath::parse(path));
  }
  if (printer->paths_.empty()) {
    Column age = age_column();
    age.type = "date";
    printer->columns_.push_back(std::move(age));
    printer->paths_.push_back(api::detail::JsonPath::parse(".metadata.creationTimestamp"));
  }
  return printer;
}

void Printer::append(const Object& object, Cells& cells) const {
  if (row_ != nullptr) {
    row_(object, cells);
    return;
  }
  cells.text(object.name());
  for (std::size_t i = 0; i < paths_.size(); ++i) {
    const auto found = paths_[i] ? paths_[i]->find(object.body()) : std::vector<Value>{};
    if (found.empty()) {
      cells.null();
    } else {
      custom_cell(columns_[i + 1], found.front(), cells);
    }
  }
}

std::string column_definitions(const Printer& printer) {
  std::string out = "[";
  for (const Column& column : printer.columns()) {
    if (out.size() > 1) out += ',';
    out += R"({"name":)";
    endpoints::append_json_string(column.name, out);
    out += R"(,"type":)";
    endpoints::append_json_string(column.type, out);
    out += R"(,"format":)";
    endpoints::append_json_string(column.format, out);
    out += R"(,"description":)";
    endpoints::append_json_string(column.description, out);
    out += fmt::format(R"(,"priority":{}}})", column.priority);
  }
  return out + "]";
}

std::string table_row(const Printer& printer, const Object& stored, const Object& shown,
                      IncludeObject include, const std::string& group_version, api::Time now) {
  Cells cells(now);
  printer.append(printer.is_custom() ? shown : stored, cells);
  std::string out = R"({"cells":[)" + cells.json() + "]";
  if (!cells.conditions().empty()) out += R"(,"conditions":)" + cells.conditions();
  out += R"(,"object":)";
  if (include == IncludeObject::kNone) {
    out += "null";
  } else if (include == IncludeObject::kObject) {
    api::detail::write_json(shown.body(), out);
  } else {
    const Object metadata =
        api::with_type(api::partial_metadata(shown), group_version, "PartialObjectMetadata");
    api::detail::write_json(metadata.body(), out);
  }
  return out + "}";
}

}  // namespace lookout::apiserver::tables
