// SetFile: keeps the last set of a service in a file, for starts without an API server.
#pragma once

#include <memory>
#include <string>

#include "lookout/registry/instance_set.h"
#include "lookout/registry/registry.h"

namespace lookout::registry {

/// Writes the newest set of a service to a file whenever it changes, on the registry's callback
/// threads. A set without a ready instance is not written: for a start without an API server, the
/// last instances are better than none. A failed write is logged.
///
/// The file is JSON with a format version. It is replaced atomically (written to a temporary file,
/// synced, renamed), so a reader never sees a partial set. Only one program may write a file at a
/// time.
class SetFile {
 public:
  /// Throws what Discovery::subscribe() throws.
  SetFile(Discovery& discovery, std::string service, std::string path);
  /// Waits for a running write.
  ~SetFile() = default;

 private:
  Subscription subscription_;
};

/// The set of `service` in the file; its freshness() is not live, since the time of writing. Null
/// if there is no such file, if it is for another service or has another format, or if it cannot be
/// read (which is logged).
InstanceSetPtr read_set_file(const std::string& path, const std::string& service);

/// Throws Error if it cannot be written.
void write_set_file(const std::string& path, const InstanceSet& set);

}  // namespace lookout::registry
