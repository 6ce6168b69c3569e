// Objects as JSON, YAML, names or by a template.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "cmd/columns.h"
#include "lookout/api/object.h"
#include "lookout/api/resource.h"

namespace lookout::cmd {

class CustomColumns;
class JsonPathTemplate;

/// The output format of `lookout get -o`.
struct OutputFormat {
  enum class Kind { kTable, kWideTable, kJson, kYaml, kName, kTemplate, kColumns };

  Kind kind = Kind::kTable;
  std::shared_ptr<const JsonPathTemplate> path_template = nullptr;
  std::shared_ptr<const CustomColumns> columns = nullptr;

  /// Reads "table", "wide", "json", "yaml", "name", "jsonpath=TEMPLATE", "custom-columns=SPEC" or
  /// "custom-columns-file=FILE". Throws Error with the reason.
  static OutputFormat parse(const std::string& text);

  bool is_table() const { return kind == Kind::kTable || kind == Kind::kWideTable; }
};

/// Formats objects; not as a table.
class ObjectPrinter {
 public:
  ObjectPrinter(OutputFormat format, bool shows_managed_fields, bool no_headers)
      : format_(std::move(format)),
        shows_managed_fields_(shows_managed_fields),
        no_headers_(no_headers) {}

  void add(const api::Resource& resource, const api::Object& object);
  bool empty() const { return shown_.empty() && rows_.empty(); }
  /// All objects as one text: a List, or if `single`, just the only object. A name has a line of its own
  /// in both cases.
  std::string text(bool single) const;

 private:
  std::string list_json() const;
  std::string list_yaml() const;
  std::string by_template(bool single) const;
  std::string by_columns() const;

  OutputFormat format_;
  bool shows_managed_fields_;
  bool no_headers_;
  /// The text of each object in the format; for a template in JSON.
  std::vector<std::string> shown_;
  /// For columns.
  std::vector<Row> rows_;
};

}  // namespace lookout::cmd
