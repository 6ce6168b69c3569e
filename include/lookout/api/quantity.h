// Quantity: amounts of resources such as "500m", "10Gi", "1e3".
#pragma once

#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lookout::api {

/// resource.Quantity: a fixed-point number with a resolution of one billionth, and the notation it
/// was written in. Finer amounts are rounded up, as in Kubernetes. Comparisons use the amount only.
class Quantity {
 public:
  enum class Format { kDecimalExponent, kBinarySI, kDecimalSI };

  Quantity() = default;
  /// Parses a quantity; empty if the text is not one. A quantity that is too large becomes the
  /// largest: 2^63 - 1 with a binary suffix, as in Kubernetes, and 10^28 otherwise.
  static std::optional<Quantity> parse(std::string_view text);
  /// resource.NewQuantity and NewMilliQuantity: a number of units, or of thousandths.
  static Quantity of(std::int64_t units, Format format = Format::kDecimalSI);
  static Quantity of_milli(std::int64_t thousandths, Format format = Format::kDecimalSI);

  /// The amount in units or in thousandths, rounded up; the largest number if it does not fit.
  std::int64_t value() const { return scaled(0); }
  std::int64_t milli_value() const { return scaled(-3); }
  double as_double() const;
  bool is_zero() const { return nanos_ == 0; }
  Format format() const { return format_; }

  /// The canonical text, as the API server writes it.
  std::string to_string() const;

  friend bool operator==(const Quantity& a, const Quantity& b) { return a.nanos_ == b.nanos_; }
  friend std::strong_ordering operator<=>(const Quantity& a, const Quantity& b) {
    return a.nanos_ < b.nanos_   ? std::strong_ordering::less
           : a.nanos_ > b.nanos_ ? std::strong_ordering::greater
                                 : std::strong_ordering::equal;
  }
  friend Quantity operator+(const Quantity& a, const Quantity& b);
  friend Quantity operator-(const Quantity& a, const Quantity& b);
  Quantity& operator+=(const Quantity& other) { return *this = *this + other; }
  Quantity& operator-=(const Quantity& other) { return *this = *this - other; }

 private:
  __extension__ using Int128 = __int128;

  std::int64_t scaled(int exponent) const;

  Int128 nanos_ = 0;
  Format format_ = Format::kDecimalSI;
};

}  // namespace lookout::api
