// Warnings that admission adds to a response.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace lookout::apiserver::admission {

/// Adds a warning, unless it is a duplicate or exceeds kube-apiserver's limit.
inline void add_warning(std::string warning, std::vector<std::string>& warnings) {
  constexpr std::size_t kMostBytes = 4096;
  if (std::find(warnings.begin(), warnings.end(), warning) != warnings.end()) return;
  std::size_t bytes = warning.size();
  for (const std::string& earlier : warnings) bytes += earlier.size();
  if (bytes <= kMostBytes) warnings.push_back(std::move(warning));
}

}  // namespace lookout::apiserver::admission
