// The last set of a service in a file, for a start while the API server is away.
#pragma once

#include <memory>
#include <string>

#include "lookout/registry/instance_set.h"
#include "lookout/registry/registry.h"

namespace lookout::registry {

/// Writes the newest set of a service to a file whenever it changes, on the registry's threads for
/// callbacks. An empty set is not written: after a start without an API server, the last instances
/// are better than none. A file that cannot be written is logged.
///
/// The file is JSON with a version of its format. It is replaced as a whole (written beside it,
/// synced, renamed), so a reader never sees half of one. One program writes a file at a time.
class SetFile {
 public:
  /// Throws as Discovery::subscribe().
  SetFile(Discovery& discovery, std::string service, std::string path);
  /// Waits for a write that is going on.
  ~SetFile() = default;

 private:
  Subscription subscription_;
};

/// The set of `service` that the file has; its freshness() is not live, since the time of writing.
/// Null if there is no such file, or it has another service or format, or cannot be read (which is
/// logged).
InstanceSetPtr read_set_file(const std::string& path, const std::string& service);

/// Throws Error if it cannot be written.
void write_set_file(const std::string& path, const InstanceSet& set);

}  // namespace lookout::registry
