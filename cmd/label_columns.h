// Columns with labels: -L and --show-labels.
#pragma once

#include <string>
#include <vector>

#include "cmd/cli.h"
#include "cmd/columns.h"
#include "lookout/api/value.h"

namespace lookout::cmd {

/// Columns with labels behind the others, as in kubectl.
struct LabelColumns {
  /// Each has a column.
  std::vector<std::string> keys = {};
  /// A column with all labels.
  bool all = false;

  void add_to(CLI::App& app);
  void add_names(Row& row) const;
  /// `labels` is an object's metadata.labels.
  void add_values(Row& row, api::Value labels) const;
};

}  // namespace lookout::cmd
