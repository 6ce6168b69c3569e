// The table columns of kinds.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace lookout::apiserver::tables {

/// metav1.TableColumnDefinition.
struct Column {
  std::string name;
  std::string type;
  std::string format = {};
  std::string description = {};
  /// 0: always shown; 1: only in wide tables.
  int priority = 0;
};

Column name_column();
/// The age of an object.
Column age_column();
/// The creation time, for kinds without their own columns.
Column created_column();

/// The columns of a built-in resource (k8s.io/kubernetes/pkg/printers/internalversion; the facts are in
/// columns.json); empty for resources without their own columns. Scale subresources are "autoscaling",
/// "scale".
std::optional<std::vector<Column>> columns_of(std::string_view group, std::string_view plural);

}  // namespace lookout::apiserver::tables
