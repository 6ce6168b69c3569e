#include "cmd/closest.h"

#include <algorithm>

#include "lookout/base/ascii.h"

namespace lookout::cmd {
namespace {

/// The distance of Damerau and Levenshtein, for neighbouring letters.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before_last(b.size() + 1);
  std::vector<std::size_t> last(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) last[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const bool same = base::lower_case(a[i - 1]) == base::lower_case(b[j - 1]);
      row[j] = std::min({last[j] + 1, row[j - 1] + 1, last[j - 1] + (same ? 0 : 1)});
      const bool swapped = i > 1 && j > 1 &&
                           base::lower_case(a[i - 1]) == base::lower_case(b[j - 2]) &&
                           base::lower_case(a[i - 2]) == base::lower_case(b[j - 1]);
      if (swapped) row[j] = std::min(row[j], before_last[j - 2] + 1);
    }
    std::swap(before_last, last);
    std::swap(last, row);
  }
  return last[b.size()];
}

}  // namespace

std::string closest(std::string_view word, const std::vector<std::string>& known) {
  // Longer names are not typing errors.
  constexpr std::size_t kLongest = 100;
  if (word.empty() || word.size() > kLongest) return {};
  // One mistake per three letters: short words have too many similar words.
  std::size_t least = std::min<std::size_t>(word.size() / 3, 3) + 1;
  std::string found;
  for (const std::string& candidate : known) {
    if (candidate.empty() || candidate.size() > kLongest) continue;
    const std::size_t d = distance(word, candidate);
    if (d < least) {
      least = d;
      found = candidate;
    }
  }
  return found;
}

}  // namespace lookout::cmd
