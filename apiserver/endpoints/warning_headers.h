// Warnings as a client gets them.
#pragma once

#include <string>
#include <vector>

namespace lookout::apiserver::endpoints {

/// The values of the Warning headers, as k8s.io/apiserver's filters.WithWarningRecorder makes them:
/// each text once, and no text that is not UTF-8. If all have more than 4096 characters, each is cut
/// to 256, and what comes after 4096 is left out. Unlike the original, which drops texts with control
/// characters, this writes spaces for those.
std::vector<std::string> warning_headers(const std::vector<std::string>& texts);

}  // namespace lookout::apiserver::endpoints
