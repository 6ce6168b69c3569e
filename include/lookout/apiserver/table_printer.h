// Objects in the columns in which kubectl shows them.
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

/// Makes the cells that a Kubernetes API server puts into a Table (meta.k8s.io), for programs that
/// have the objects already. A small value; immutable; any thread may use it.
class TablePrinter {
 public:
  /// For a built-in resource: {"", "pods"}. A resource without columns of its own shows the name
  /// and the time of creation.
  static TablePrinter of_builtin(std::string_view group, std::string_view plural);
  /// For a custom resource: `version` is the one of its CustomResourceDefinition's versions whose
  /// additionalPrinterColumns count. An absent value shows name and age.
  static TablePrinter of_custom(api::Value version);

  /// The names of the columns, without those that only wide tables show: "Name", "Ready" ...
  std::vector<std::string> columns() const;
  /// The object's cells in these columns, as kubectl prints them. Ages are counted up to `now`.
  std::vector<std::string> cells(const api::Object& object, api::Time now) const;

 private:
  explicit TablePrinter(std::shared_ptr<const tables::Printer> printer);

  std::shared_ptr<const tables::Printer> printer_;
};

/// A cell of a Table as kubectl prints it: the first line of a text, nothing for a null.
std::string cell_text(api::Value cell);

}  // namespace lookout::apiserver
