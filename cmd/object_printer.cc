#include "cmd/object_printer.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string_view>
#include <utility>

#include "cmd/custom_columns.h"
#include "cmd/go_json.h"
#include "cmd/json_path_template.h"
#include "cmd/object_name.h"
#include "lookout/api/detail/object_editor.h"
#include "lookout/api/detail/yaml_writer.h"
#include "lookout/api/symbols.h"
#include "lookout/base/ascii.h"
#include "lookout/base/error.h"

namespace lookout::cmd {
namespace {

std::string indented(std::string_view text, std::string_view indent) {
  std::string out;
  for (const char c : text) {
    out += c;
    if (c == '\n') out += indent;
  }
  return out;
}

}  // namespace

OutputFormat OutputFormat::parse(const std::string& text) {
  constexpr std::string_view kTemplate = "jsonpath=";
  constexpr std::string_view kColumns = "custom-columns=";
  constexpr std::string_view kColumnsFile = "custom-columns-file=";
  const std::string word = base::lower_case(text);
  if (word == "table") return {Kind::kTable};
  if (word == "wide") return {Kind::kWideTable};
  if (word == "json") return {Kind::kJson};
  if (word == "yaml") return {Kind::kYaml};
  if (word == "name") return {Kind::kName};
  if (text == "jsonpath") throw Error("a template is missing: jsonpath={.metadata.name}");
  if (text == "custom-columns" || text == "custom-columns-file")
    throw Error("columns are missing: custom-columns=NAME:.metadata.name");
  if (text.starts_with(kColumns)) {
    return {.kind = Kind::kColumns,
            .columns = std::make_shared<const CustomColumns>(
                CustomColumns::parse(text.substr(kColumns.size())))};
  }
  if (text.starts_with(kColumnsFile)) {
    return {.kind = Kind::kColumns,
            .columns = std::make_shared<const CustomColumns>(
                CustomColumns::parse_file(text.substr(kColumnsFile.size())))};
  }
  if (!text.starts_with(kTemplate)) {
    throw Error(
        fmt::format("\"{}\" is not table, wide, json, yaml, name, jsonpath=TEMPLATE, "
                    "custom-columns=SPEC or custom-columns-file=FILE",
                    text.substr(0, text.find('='))));
  }
  return {Kind::kTemplate, std::make_shared<const JsonPathTemplate>(text.substr(kTemplate.size()))};
}

void ObjectPrinter::add(const api::Resource& resource, const api::Object& object) {
  using Kind = OutputFormat::Kind;
  if (format_.kind == Kind::kName) {
    shown_.push_back(name_of(resource, object.name()));
    return;
  }
  if (format_.kind == Kind::kColumns) {
    rows_.push_back(format_.columns->values(object.body()));
    return;
  }
  // As in kubectl, templates have all fields.
  const api::Object shown =
      shows_managed_fields_ || format_.kind == Kind::kTemplate
          ? object
          : api::with_metadata(object, {{api::sym::kManagedFields, std::monostate()}});
  if (format_.kind == Kind::kYaml) {
    shown_.push_back(api::detail::to_yaml(shown.to_json()));
  } else {
    shown_.push_back(format_.kind == Kind::kJson ? go_pretty_json(shown.body()) : shown.to_json());
  }
}

std::string ObjectPrinter::text(bool single) const {
  switch (format_.kind) {
    case OutputFormat::Kind::kJson:
      return single ? shown_.front() + "\n" : list_json();
    case OutputFormat::Kind::kYaml:
      return single ? shown_.front() : list_yaml();
    case OutputFormat::Kind::kTemplate:
      return by_template(single);
    case OutputFormat::Kind::kColumns:
      return by_columns();
    default: {
      std::string out;
      for (const std::string& name : shown_) out += name + "\n";
      return out;
    }
  }
}

std::string ObjectPrinter::list_json() const {
  std::string out = "{\n    \"apiVersion\": \"v1\",\n    \"items\": [";
  for (const std::string& each : shown_) {
    if (&each != &shown_.front()) out += ',';
    // Strings in JSON contain no line breaks: each one starts a line to indent.
    out += "\n        " + indented(each, "        ");
  }
  return out + (shown_.empty() ? "" : "\n    ") +
         "],\n    \"kind\": \"List\",\n    \"metadata\": {\n        \"resourceVersion\": \"\"\n"
         "    }\n}\n";
}

std::string ObjectPrinter::list_yaml() const {
  std::string out = "apiVersion: v1\nitems:";
  out += shown_.empty() ? " []\n" : "\n";
  for (const std::string& each : shown_)
    out += "- " + indented(std::string_view(each).substr(0, each.size() - 1), "  ") + "\n";
  return out + "kind: List\nmetadata:\n  resourceVersion: \"\"\n";
}

std::string ObjectPrinter::by_template(bool single) const {
  const api::Object root =
      api::Object::parse(single ? shown_.front()
                                : fmt::format(R"({{"apiVersion":"v1","items":[{}],"kind":"List",)"
                                              R"("metadata":{{"resourceVersion":""}}}})",
                                              fmt::join(shown_, ",")));
  return format_.path_template->render(root.body());
}

std::string ObjectPrinter::by_columns() const {
  std::vector<Row> all = rows_;
  if (!no_headers_) all.insert(all.begin(), format_.columns->headers());
  return align(std::move(all));
}

}  // namespace lookout::cmd
