// TablePrinter: kubectl's columns for objects.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/api/object.h"
#include "lookout/api/time.h"
#include "lookout/api/value.h"

namespace lookout::apiserver {

namespace tables {
class Printer;
}

/// Computes the cells of a Table (meta.k8s.io) as a Kubernetes API server does, for programs that
/// have the objects already. A small, immutable value; any thread may use it.
class TablePrinter {
 public:
  /// For a built-in resource: {"", "pods"}. A resource without special columns shows the name and
  /// the creation time.
  static TablePrinter of_builtin(std::string_view group, std::string_view plural);
  /// For a custom resource: `version` is the entry in its CustomResourceDefinition's versions that
  /// has the additionalPrinterColumns. An absent value shows name and age.
  static TablePrinter of_custom(api::Value version);

  /// The names of the columns in a normal (not wide) table: "Name", "Ready" ...
  std::vector<std::string> columns() const;
  /// The object's cells for these columns, as kubectl prints them. Ages are relative to `now`.
  std::vector<std::string> cells(const api::Object& object, api::Time now) const;

 private:
  explicit TablePrinter(std::shared_ptr<const tables::Printer> printer);

  std::shared_ptr<const tables::Printer> printer_;
};

/// A cell of a Table as kubectl prints it: the first line of a text, nothing for a null.
std::string cell_text(api::Value cell);

}  // namespace lookout::apiserver
