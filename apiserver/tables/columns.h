// The columns in which kinds are shown to people.
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
/// How long ago something was made.
Column age_column();
/// When something was made: of kinds without columns of their own.
Column created_column();

/// The columns of a built-in resource (k8s.io/kubernetes/pkg/printers/internalversion; the facts
/// are in columns.json); nothing for those that have no columns of their own. The scale of anything
/// is "autoscaling", "scale".
std::optional<std::vector<Column>> columns_of(std::string_view group, std::string_view plural);

}  // namespace lookout::apiserver::tables
