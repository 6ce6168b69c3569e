#include "lookout/api/quantity.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

namespace lookout::api {
namespace {

__extension__ using Int128 = __int128;

constexpr Int128 kNano = 1'000'000'000;
constexpr Int128 kMaxNanos = Int128{std::numeric_limits<std::int64_t>::max()} * kNano;

struct Suffix {
  std::string_view text;
  int exponent;  // of 10 or, for the binary ones, of 2
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

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// a * factor, at most kMaxNanos.
Int128 multiply_capped(Int128 a, Int128 factor) {
  return a > kMaxNanos / factor ? kMaxNanos : a * factor;
}

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

std::optional<Quantity> Quantity::parse(std::string_view text) {
  std::string_view rest = text;
  bool negative = false;
  if (!rest.empty() && (rest.front() == '-' || rest.front() == '+')) {
    negative = rest.front() == '-';
    rest.remove_prefix(1);
  }
  const auto take_digits = [&] {
    std::size_t n = 0;
    while (n < rest.size() && is_digit(rest[n])) ++n;
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
  if (whole.empty() && fraction.empty()) return std::nullopt;

  Quantity out;
  int decimal = 0;  // the suffix as powers of 10 and of 2
  int binary = 0;
  const auto find = [&](const auto& table) {
    return std::find_if(table.begin(), table.end(),
                        [&](const Suffix& s) { return s.text == rest; });
  };
  if (const auto it = find(kDecimal); it != kDecimal.end()) {
    decimal = it->exponent;
  } else if (const auto it2 = find(kBinary); it2 != kBinary.end()) {
    binary = it2->exponent;
    out.format_ = Format::kBinarySI;
  } else if (!rest.empty() && (rest.front() == 'e' || rest.front() == 'E')) {
    out.format_ = Format::kDecimalExponent;
    rest.remove_prefix(1);
    const char* begin = rest.data() + (!rest.empty() && rest.front() == '+' ? 1 : 0);
    const char* end = rest.data() + rest.size();
    if (begin == end || (begin != rest.data() && !is_digit(*begin))) return std::nullopt;
    const auto [parsed, error] = std::from_chars(begin, end, decimal);
    if (error != std::errc{} || parsed != end) return std::nullopt;
    decimal = std::clamp(decimal, -1000, 1000);
  } else {
    return std::nullopt;
  }

  // The amount is digits * 10^scale * 2^binary, kept in billionths.
  Int128 amount = 0;
  bool inexact = false;
  int scale = decimal + 9;
  const auto add_digit = [&](char c, int digit_scale) {
    const int digit = c - '0';
    if (digit_scale >= 0) {
      amount = std::min(kMaxNanos, multiply_capped(amount, 10) + digit);
    } else if (digit != 0 && binary == 0) {
      inexact = true;
    }
  };
  if (binary == 0) {
    // Digits from the left; what falls below a billionth rounds up.
    const int below = static_cast<int>(std::min<std::size_t>(whole.size(), 100000));
    for (std::size_t i = 0; i < whole.size(); ++i)
      add_digit(whole[i], scale + below - 1 - static_cast<int>(std::min<std::size_t>(i, 100000)));
    for (std::size_t i = 0; i < fraction.size(); ++i)
      add_digit(fraction[i], scale - 1 - static_cast<int>(std::min<std::size_t>(i, 100000)));
    // What was left of the scale after the last digit that counted.
    int rest_scale = scale - static_cast<int>(std::min<std::size_t>(fraction.size(), 100000));
    for (; rest_scale > 0 && amount != 0; --rest_scale) amount = multiply_capped(amount, 10);
    if (inexact) amount = std::min(kMaxNanos, amount + 1);
  } else {
    // (whole + fraction) * 2^binary: exact in 128 bits for up to 18 fraction digits.
    const Int128 factor = Int128{1} << binary;
    for (const char c : whole)
      amount = std::min(kMaxNanos, multiply_capped(amount, 10) + (c - '0'));
    amount = multiply_capped(multiply_capped(amount, kNano), factor);
    Int128 numerator = 0;
    Int128 denominator = 1;
    for (std::size_t i = 0; i < fraction.size() && i < 18; ++i) {
      numerator = numerator * 10 + (fraction[i] - '0');
      denominator *= 10;
    }
    // numerator / denominator < 1; multiply step by step to stay in range: by 2^binary first, then
    // by the billion.
    const Int128 scaled = numerator * factor;
    const Int128 quotient = scaled / denominator;
    const Int128 remainder = scaled % denominator;
    Int128 nanos = multiply_capped(quotient, kNano) + remainder * kNano / denominator;
    if (remainder * kNano % denominator != 0) ++nanos;
    amount = std::min(kMaxNanos, amount + nanos);
  }
  out.nanos_ = negative ? -amount : amount;
  return out;
}

std::int64_t Quantity::scaled(int exponent) const {
  Int128 divisor = kNano;
  for (; exponent < 0; ++exponent) divisor /= 10;
  Int128 quotient = nanos_ / divisor;
  // Up means away from zero, as in Kubernetes.
  if (nanos_ % divisor != 0) quotient += nanos_ > 0 ? 1 : -1;
  constexpr Int128 kMax = std::numeric_limits<std::int64_t>::max();
  return static_cast<std::int64_t>(std::clamp(quotient, -kMax, kMax));
}

double Quantity::as_double() const { return static_cast<double>(nanos_) / 1e9; }

std::string Quantity::to_string() const {
  if (nanos_ == 0) return "0";
  Format format = format_;
  if (format == Format::kBinarySI && nanos_ > -1024 * kNano && nanos_ < 1024 * kNano)
    format = Format::kDecimalSI;
  if (format == Format::kBinarySI) {
    Int128 units = nanos_ / kNano;
    if (nanos_ % kNano != 0) units += nanos_ > 0 ? 1 : -1;
    std::size_t step = 0;
    while (step < kBinary.size() && units % 1024 == 0) {
      units /= 1024;
      ++step;
    }
    return to_text(units) + (step == 0 ? "" : std::string(kBinary[step - 1].text));
  }
  Int128 number = nanos_;
  std::size_t step = 0;
  while (step + 1 < kDecimal.size() && number % 1000 == 0) {
    number /= 1000;
    ++step;
  }
  const Suffix& suffix = kDecimal[step];
  if (format == Format::kDecimalSI) return to_text(number) + std::string(suffix.text);
  return suffix.exponent == 0 ? to_text(number)
                              : to_text(number) + "e" + std::to_string(suffix.exponent);
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
