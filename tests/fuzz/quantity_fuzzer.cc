// Quantities and times: the canonical text reads back as the same amount, the same moment.
#include <string>

#include "lookout/api/quantity.h"
#include "lookout/api/time.h"
#include "tests/fuzz/fuzzing.h"

using namespace lookout;
using fuzz::require;

namespace {

void check_quantity(std::string_view text) {
  const auto quantity = api::Quantity::parse(text);
  if (!quantity) return;
  const std::string canonical = quantity->to_string();
  const auto again = api::Quantity::parse(canonical);
  require(again && *again == *quantity && again->to_string() == canonical);
  require(again->value() == quantity->value() && again->milli_value() == quantity->milli_value());
  require(*quantity - *quantity == api::Quantity());
  require(*quantity + api::Quantity() == *quantity);
  const auto negative = api::Quantity() - *quantity;
  require(negative.value() == -quantity->value());
  require((*quantity < api::Quantity()) == (quantity->as_double() < 0));
}

void check_time(std::string_view text) {
  const auto time = api::parse_time(text);
  if (!time) return;
  const std::string canonical = api::format_micro_time(*time);
  // A time zone may shift a time beyond years of four digits.
  if (canonical.size() != std::string_view("2026-11-20T11:14:57.123456Z").size()) return;
  require(api::parse_time(canonical) == time);
  require(api::parse_time(api::format_time(*time)).has_value());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  check_quantity(text);
  check_time(text);
  return 0;
}
