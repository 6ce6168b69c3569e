// closest(): the likely meaning of a mistyped word.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lookout::cmd {

/// The known word that is closest to `word`, by the number of letters to add, remove, change or swap;
/// empty if none is close.
std::string closest(std::string_view word, const std::vector<std::string>& known);

}  // namespace lookout::cmd
