// IP addresses and ranges.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lookout::apiserver::resources {

/// An IPv4 or IPv6 address.
struct IpAddress {
  int family = 0;  // 4 or 6
  std::array<std::uint8_t, 16> bytes{};

  static std::optional<IpAddress> parse(std::string_view text);

  std::size_t bits() const { return family == 4 ? 32 : 128; }
  /// An IPv4 address inside of an IPv6 address: "::ffff:1.2.3.4".
  bool is_mapped() const;
  /// With zeros after the first `length` bits.
  IpAddress masked(std::size_t length) const;
  /// The canonical form (RFC 5952).
  std::string to_string() const;

  friend bool operator==(const IpAddress&, const IpAddress&) = default;
};

/// A range in CIDR notation: "10.0.0.0/8".
struct IpRange {
  IpAddress address;
  std::size_t length = 0;

  static std::optional<IpRange> parse(std::string_view text);

  bool contains(const IpAddress& other) const;
  std::string to_string() const;
};

/// The text without zeros at the beginning of decimal numbers: "010.0.0.08/08" is "10.0.0.8/8".
std::string without_leading_zeros(std::string_view text);

}  // namespace lookout::apiserver::resources
