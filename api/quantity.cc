#include "lookout/api/quantity.h"

#include <algorithm>
#include <array>
#include <limits>

#include "lookout/api/detail/go_text.h"
#include "lookout/base/ascii.h"

namespace lookout::api {
namespace {

__extension__ using Int128 = __int128;

constexpr Int128 kNano = 1'000'000'000;
constexpr Int128 kMaxBinaryNanos = Int128{std::numeric_limits<std::int64_t>::max()} * kNano;
// The limit of decimal quantities, for which Kubernetes has none: 10^28 units, so that two of them
// can be added.
constexpr Int128 kMaxNanos = kNano * kNano * kNano * kNano * 10;

struct Suffix {
  std::string_view text;
  int exponent;  // of 10 or, for binary suffixes, of 2
};
constexpr std::array<Suffix, 10> kDecimal = {{{"n", -9},
                                              {"u", -6},
                                              {"m", -3},
                                              {"", 0},
                                              {"k", 3},
                                              {"M", 6},
                                              {"G", 9},
                                              {"T", 12},
                                              {"P", 15},
                                              {"E", 18}}};
constexpr std::array<Suffix, 6> kBinary = {
    {{"Ki", 10}, {"Mi", 20}, {"Gi", 30}, {"Ti", 40}, {"Pi", 50}, {"Ei", 60}}};

using base::is_digit;

std::string to_text(Int128 number) {
  const bool negative = number < 0;
  if (negative) number = -number;
  std::string out;
  do {
    out += static_cast<char>('0' + static_cast<int>(number % 10));
    number /= 10;
  } while (number != 0);
  if (negative) out += '-';
  std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace

// As in Kubernetes, a number without digits is 0 ("Ki", "-", "."), but not with very large binary and
// very small decimal suffixes.
std::optional<Quantity> Quantity::parse(std::string_view text) {
  if (text.empty()) return std::nullopt;
  std::string_view rest = text;
  const bool negative = rest.front() == '-';
  if (negative || rest.front() == '+') rest.remove_prefix(1);
  const auto take_digits = [&] {
    const auto n = static_cast<std::size_t>(std::find_if_not(rest.begin(), rest.end(), is_digit) -
                                            rest.begin());
    const std::string_view digits = rest.substr(0, n);
    rest.remove_prefix(n);
    return digits;
  };
  const std::string_view whole = take_digits();
  std::string_view fraction;
  if (!rest.empty() && rest.front() == '.') {
    rest.remove_prefix(1);
    fraction = take_digits();
  }

  Quantity out;
  std::int64_t exponent = 0;  // the suffix as a power of 10 or 2
  const auto find = [&](const auto& table) {
    const auto it =
        std::find_if(table.begin(), table.end(), [&](const Suffix& s) { return s.text == rest; });
    if (it != table.end()) exponent = it->exponent;
    return it != table.end();
  };
  if (find(kDecimal)) {
    out.format_ = Format::kDecimalSI;
  } else if (find(kBinary)) {
    out.format_ = Format::kBinarySI;
  } else if (rest.size() > 1 && (rest.front() == 'e' || rest.front() == 'E')) {
    out.format_ = Format::kDecimalExponent;
    const auto parsed = detail::parse_int(rest.substr(1));
    if (!parsed) return std::nullopt;
    exponent = std::clamp<std::int64_t>(*parsed, std::numeric_limits<std::int32_t>::min(),
                                        std::numeric_limits<std::int32_t>::max());
  } else {
    return std::nullopt;
  }
  const bool binary = out.format_ == Format::kBinarySI;
  if (whole.empty() && fraction.empty() && (binary ? exponent >= 50 : exponent < -9))
    return std::nullopt;
  const Int128 limit = binary ? kMaxBinaryNanos : kMaxNanos;

  Int128 nanos = 0;
  bool inexact = false;  // below a billionth
  const auto append = [&](int digit) { nanos = std::min(nanos * 10 + digit, limit); };
  if (binary) {
    const Int128 unit = kNano << exponent;
    for (const char c : whole) append(c - '0');
    nanos = nanos > limit / unit ? limit : nanos * unit;
    // The fraction times the unit, digit by digit from the right.
    Int128 carry = 0;
    for (auto c = fraction.rbegin(); c != fraction.rend(); ++c) {
      carry += (*c - '0') * unit;
      inexact |= carry % 10 != 0;
      carry /= 10;
    }
    nanos = std::min(nanos + carry, limit);
  } else {
    // The number of digits before the point, in billionths.
    const std::int64_t point = static_cast<std::int64_t>(whole.size()) + exponent + 9;
    std::int64_t at = 0;
    for (const std::string_view part : {whole, fraction}) {
      for (const char c : part) {
        if (at++ < point) {
          append(c - '0');
        } else {
          inexact |= c != '0';
        }
      }
    }
    for (; at < point && nanos != 0 && nanos != limit; ++at) append(0);
  }
  if (inexact) nanos = std::min(nanos + 1, limit);
  if (binary && nanos > 0 && nanos < kNano) out.format_ = Format::kDecimalSI;
  out.nanos_ = negative ? -nanos : nanos;
  return out;
}

Quantity Quantity::of(std::int64_t units, Format format) {
  Quantity out;
  out.nanos_ = units * kNano;
  out.format_ = format;
  return out;
}

Quantity Quantity::of_milli(std::int64_t thousandths, Format format) {
  Quantity out;
  out.nanos_ = thousandths * (kNano / 1000);
  out.format_ = format;
  return out;
}

std::int64_t Quantity::scaled(int exponent) const {
  Int128 divisor = kNano;
  for (; exponent < 0; ++exponent) divisor /= 10;
  Int128 quotient = nanos_ / divisor;
  // Rounds away from zero, as in Kubernetes.
  if (nanos_ % divisor != 0) quotient += nanos_ > 0 ? 1 : -1;
  constexpr Int128 kMax = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(std::clamp(quotient, -kMax, kMax));
}

double Quantity::as_double() const { return static_cast<double>(nanos_) / 1e9; }

std::string Quantity::to_string() const {
  if (nanos_ == 0) return "0";
  // Use binary notation if it is exact.
  if (format_ == Format::kBinarySI && (nanos_ <= -1024 * kNano || nanos_ >= 1024 * kNano) &&
      nanos_ % kNano == 0) {
    Int128 units = nanos_ / kNano;
    std::size_t step = 0;
    while (step < kBinary.size() && units % 1024 == 0) {
      units /= 1024;
      ++step;
    }
    return to_text(units) + (step == 0 ? "" : std::string(kBinary[step - 1].text));
  }
  const bool suffixes = format_ != Format::kDecimalExponent;
  Int128 number = nanos_;
  int exponent = -9;
  while (number % 1000 == 0 && (!suffixes || exponent < 18)) {
    number /= 1000;
    exponent += 3;
  }
  if (!suffixes && exponent != 0) return to_text(number) + "e" + std::to_string(exponent);
  const auto suffix = std::find_if(kDecimal.begin(), kDecimal.end(),
                                   [&](const Suffix& s) { return s.exponent == exponent; });
  return to_text(number) + std::string(suffix->text);
}

Quantity operator+(const Quantity& a, const Quantity& b) {
  Quantity out = a;
  if (a.nanos_ == 0) out.format_ = b.format_;
  out.nanos_ = std::clamp(a.nanos_ + b.nanos_, -kMaxNanos, kMaxNanos);
  return out;
}

Quantity operator-(const Quantity& a, const Quantity& b) {
  Quantity out = a;
  if (a.nanos_ == 0) out.format_ = b.format_;
  out.nanos_ = std::clamp(a.nanos_ - b.nanos_, -kMaxNanos, kMaxNanos);
  return out;
}

}  // namespace lookout::api
