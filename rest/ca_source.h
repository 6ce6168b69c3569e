// CaSource: the current certificate authorities.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "lookout/base/watched_file.h"
#include "lookout/rest/config.h"

namespace lookout::rest::detail {

/// The certificate authorities of a Config. Reads a changed file again (client-go 1.36 does so every
/// five minutes) and uses it for new connections; existing connections continue. An unreadable or
/// invalid file does not replace the last valid one. Thread-safe.
class CaSource {
 public:
  /// Throws ConfigError if authorities are configured but contain no certificate: falling back to
  /// the system's would trust others.
  explicit CaSource(const Config& config);

  /// PEM; null for the system's authorities or none (insecure). The same pointer while the text is
  /// unchanged. Checks the file at most once per second.
  std::shared_ptr<const std::string> current();

 private:
  std::mutex mutex_;
  std::shared_ptr<const std::string> pem_;  // guarded by mutex_, as is file_
  std::optional<WatchedFile> file_;
};

/// Why the text has no valid certificate authority; empty if it has.
std::string ca_error(const std::string& pem);

}  // namespace lookout::rest::detail
