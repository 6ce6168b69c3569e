#include "cmd/sorting.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "cmd/custom_columns.h"
#include "lookout/base/error.h"

namespace lookout::cmd {
namespace {

bool is_decimal(char c) { return c >= '0' && c <= '9'; }

/// Removes the digits at the beginning of `text`, after `zeros` zeros, and returns them.
std::string_view take_digits(std::string_view& text, std::size_t& zeros) {
  zeros = std::min(text.find_first_not_of('0'), text.size());
  text.remove_prefix(zeros);
  std::size_t length = 0;
  while (length < text.size() && is_decimal(text[length])) ++length;
  const std::string_view out = text.substr(0, length);
  text.remove_prefix(length);
  return out;
}

}  // namespace

bool natural_less(std::string_view a, std::string_view b) {
  while (!a.empty() && !b.empty()) {
    const bool digit = is_decimal(a.front());
    if (digit != is_decimal(b.front())) return digit;
    if (!digit) {
      if (a.front() != b.front())
        return static_cast<unsigned char>(a.front()) < static_cast<unsigned char>(b.front());
      a.remove_prefix(1);
      b.remove_prefix(1);
      continue;
    }
    std::size_t zeros_a = 0;
    std::size_t zeros_b = 0;
    const std::string_view number_a = take_digits(a, zeros_a);
    const std::string_view number_b = take_digits(b, zeros_b);
    if (number_a.size() != number_b.size()) return number_a.size() < number_b.size();
    if (number_a != number_b) return number_a < number_b;
    if (zeros_a != zeros_b) return zeros_a < zeros_b;
  }
  return a.size() < b.size();
}

Sorting::Sorting(const std::string& path) : text_(path), path_(relaxed_path(path)) {}

SortKey Sorting::key(api::Value root) const {
  const std::vector<api::Value> found = path_.find_in_bounds(root);
  if (found.empty() || found.front().is_null()) return {};
  const api::Value value = found.front();
  if (value.is_number()) return {.number = value.as_double()};
  if (!value.is_string()) return {.unsortable = true};
  const std::string_view text = value.as_string();
  return {.text = std::string(text), .quantity = api::Quantity::parse(text)};
}

std::vector<std::size_t> Sorting::order(const std::vector<SortKey>& keys) const {
  if (!keys.empty() && std::ranges::all_of(keys, &SortKey::absent))
    throw Error(fmt::format("--sort-by: no object has {}", text_));
  // (kubectl decides for each pair. Then 9, 10 and 9a have no order.)
  const bool by_quantity =
      std::ranges::all_of(keys, [](const SortKey& key) { return !key.text || key.quantity; });
  std::vector<std::size_t> out(keys.size());
  std::iota(out.begin(), out.end(), std::size_t{0});
  std::ranges::stable_sort(
      out, [&](std::size_t a, std::size_t b) { return less(keys[a], keys[b], by_quantity); });
  return out;
}

bool Sorting::less(const SortKey& a, const SortKey& b, bool by_quantity) const {
  if (a.absent() || b.absent()) return a.absent() && !b.absent();
  if (a.number && b.number) return *a.number < *b.number;
  if (!a.text || !b.text)
    throw Error(fmt::format("--sort-by: {} has values that cannot be sorted", text_));
  return by_quantity ? *a.quantity < *b.quantity : natural_less(*a.text, *b.text);
}

}  // namespace lookout::cmd
