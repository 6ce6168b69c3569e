// The CA certificates in a file that may change.
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace lookout::rest::detail {

/// Returns a function that returns the CA certificates in a file (PEM), which is read again when it
/// changes: as long as the text is the same, so is the pointer. It checks the file at most once a
/// second; invalid content does not replace valid content. With an empty path, it returns null: the
/// system's CAs. The function is safe to call from several threads.
///
/// Throws ConfigError if the file cannot be used now.
std::function<std::shared_ptr<const std::string>()> follow_ca_file(const std::string& path);

}  // namespace lookout::rest::detail
