// Indexes of jobs: "0-2,5".
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace lookout::apiserver::resources {

/// The number of indexes in the text. Throws std::invalid_argument.
std::int64_t count_indexes(std::string_view text, std::int64_t completions);

/// The valid intervals in the text.
std::vector<std::pair<std::int64_t, std::int64_t>> valid_intervals(std::string_view text,
                                                                   std::int64_t completions);

}  // namespace lookout::apiserver::resources
