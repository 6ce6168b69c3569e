// Printer: the table rows of a resource's objects.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "apiserver/tables/columns.h"
#include "apiserver/tables/rows.h"
#include "lookout/api/detail/json_path.h"

namespace lookout::apiserver::tables {

/// Columns, and the cells of an object in them. Immutable.
class Printer {
 public:
  /// For a built-in resource: its columns, or name and creation time.
  static std::shared_ptr<const Printer> of_builtin(std::string_view group, std::string_view plural);
  /// For a version of a custom resource: its additionalPrinterColumns, or name and age.
  static std::shared_ptr<const Printer> of_custom(api::Value version);

  const std::vector<Column>& columns() const { return columns_; }
  bool is_custom() const { return !paths_.empty(); }
  /// `object` is the stored form or, for a custom resource, the client's form.
  void append(const api::Object& object, Cells& cells) const;

 private:
  std::vector<Column> columns_;
  AppendRow row_ = nullptr;
  /// The paths of a custom resource's columns; nullopt for an invalid path.
  std::vector<std::optional<api::detail::JsonPath>> paths_;
};

/// The object in each table row, in addition to its cells.
enum class IncludeObject { kNone, kMetadata, kObject };

/// "columnDefinitions" as a JSON array.
std::string column_definitions(const Printer& printer);

/// One row as JSON. `group_version` is that of meta.k8s.io; `stored` is the stored form of the
/// object, `shown` the client's form.
std::string table_row(const Printer& printer, const api::Object& stored, const api::Object& shown,
                      IncludeObject include, const std::string& group_version, api::Time now);

}  // namespace lookout::apiserver::tables
