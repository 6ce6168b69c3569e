// Following objects as they change: `lookout watch` and `lookout get -w`.
#pragma once

#include <chrono>
#include <string>

#include "cmd/connection.h"
#include "cmd/label_columns.h"
#include "cmd/object_printer.h"
#include "cmd/selection.h"

namespace lookout::cmd {

struct WatchFlags {
  SelectionFlags selection;
  std::string output = "table";
  std::chrono::milliseconds resync{0};
  bool exit_after_sync = false;
  /// Whether a table shows the types of events, and that the existing objects are complete.
  bool shows_events = true;
  /// Whether a table begins with the names of its columns.
  bool shows_headers = true;
  LabelColumns labels = {};
  /// Do not show the existing objects.
  bool only_changes = false;
  /// Another format than a table, for each object that is added, changed or deleted.
  OutputFormat format = {};
  bool shows_managed_fields = false;
};

/// Prints the existing objects of one resource and then changes, until a signal. Returns the exit status.
int watch_objects(const ConnectionFlags& connection, const std::string& metrics_listen,
                  const WatchFlags& flags);

}  // namespace lookout::cmd
