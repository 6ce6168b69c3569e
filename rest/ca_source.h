// Whom to trust, kept current.
#pragma once

#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "lookout/base/watched_file.h"
#include "lookout/rest/config.h"

namespace lookout::rest::detail {

/// The certificate authorities of a Config. A file is read again when it changes (client-go 1.36
/// does so every five minutes): new connections are then made with what it holds; those that exist
/// go on. What is no certificate, or cannot be read, does not replace what was good. Safe to use
/// from several threads.
class CaSource {
 public:
  /// Throws ConfigError if there is something, and no certificate in it: to go on with those of the
  /// system would be to trust others.
  explicit CaSource(const Config& config);

  /// PEM; null for those of the system, or nobody at all (insecure). The same pointer for as long
  /// as it is the same text. Looks at the file once a second at most.
  std::shared_ptr<const std::string> current();

 private:
  std::mutex mutex_;
  std::shared_ptr<const std::string> pem_;  // guarded by mutex_, as is file_
  std::optional<WatchedFile> file_;
};

/// Why the text cannot be a file of authorities; empty if it can.
std::string ca_error(const std::string& pem);

}  // namespace lookout::rest::detail
