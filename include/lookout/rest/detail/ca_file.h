// The certificate authorities in a file that may change.
#pragma once

#include <functional>
#include <memory>
#include <string>

namespace lookout::rest::detail {

/// Returns a function that gives the authorities in a file (PEM), which is read again when it
/// changes: the same pointer for as long as it is the same text. It looks at the file once a second
/// at most; what cannot be used does not replace what was good. With an empty path it gives null:
/// the system's authorities. The function is safe to call from several threads.
///
/// Throws ConfigError if the file cannot be used now.
std::function<std::shared_ptr<const std::string>()> follow_ca_file(const std::string& path);

}  // namespace lookout::rest::detail
