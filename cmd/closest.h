// closest(): the likely meaning of a mistyped word.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lookout::cmd {

/// The known word that is nearest to `word`, by the letters to add, leave out, change or swap;
/// empty if none is near.
std::string closest(std::string_view word, const std::vector<std::string>& known);

}  // namespace lookout::cmd
