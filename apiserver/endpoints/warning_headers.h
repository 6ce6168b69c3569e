// Warning headers.
#pragma once

#include <string>
#include <vector>

namespace lookout::apiserver::endpoints {

/// The values of the Warning headers, like those of k8s.io/apiserver's filters.WithWarningRecorder: each text
/// once, without texts that are not UTF-8. If they have more than 4096 characters in total, each is cut to 256,
/// and texts after the first 4096 characters are omitted. Unlike the original, which drops texts with control
/// characters, this replaces control characters with spaces.
std::vector<std::string> warning_headers(const std::vector<std::string>& texts);

}  // namespace lookout::apiserver::endpoints
