// Reading protobuf messages field by field.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace lookout::api::detail {

enum WireType : unsigned { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

/// The greatest field number of protobuf.
inline constexpr std::uint64_t kMaxFieldNumber = (std::uint64_t{1} << 29) - 1;

inline const std::uint8_t* begin_of(std::string_view bytes) {
  return reinterpret_cast<const std::uint8_t*>(bytes.data());
}
inline const std::uint8_t* end_of(std::string_view bytes) { return begin_of(bytes) + bytes.size(); }

/// Returns false if the number does not end before `end` or has more than 64 bits.
inline bool read_number(const std::uint8_t*& p, const std::uint8_t* end, std::uint64_t& out) {
  if (p < end && *p < 0x80) {
    out = *p++;
    return true;
  }
  out = 0;
  for (unsigned shift = 0; p < end && shift < 64; shift += 7) {
    const std::uint64_t byte = *p++;
    if (shift == 63 && byte > 1) return false;
    out |= (byte & 0x7F) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

/// The content of one field.
struct WireContent {
  unsigned wire_type = 0;
  std::uint64_t number = 0;  // of the wire types 0, 1 and 5
  std::string_view bytes;    // of wire type 2
};

enum class WireFault { kNone, kBadTag, kBadNumber, kBadType, kTruncated };

/// Reads one field from `p`, which is before `end`.
inline WireFault read_field(const std::uint8_t*& p, const std::uint8_t* end, std::uint64_t& number,
                            WireContent& content) {
  std::uint64_t tag = 0;
  if (!read_number(p, end, tag)) return WireFault::kBadTag;
  number = tag >> 3;
  if (number == 0 || number > kMaxFieldNumber) return WireFault::kBadNumber;
  content.wire_type = static_cast<unsigned>(tag & 7);
  switch (content.wire_type) {
    case kVarint:
      return read_number(p, end, content.number) ? WireFault::kNone : WireFault::kTruncated;
    case kFixed64:
    case kFixed32: {
      const std::size_t size = content.wire_type == kFixed64 ? 8 : 4;
      if (static_cast<std::size_t>(end - p) < size) return WireFault::kTruncated;
      content.number = 0;
      for (std::size_t i = 0; i < size; ++i) content.number |= std::uint64_t{p[i]} << (8 * i);
      p += size;
      return WireFault::kNone;
    }
    case kBytes: {
      std::uint64_t size = 0;
      if (!read_number(p, end, size) || size > static_cast<std::size_t>(end - p))
        return WireFault::kTruncated;
      content.bytes = {reinterpret_cast<const char*>(p), static_cast<std::size_t>(size)};
      p += size;
      return WireFault::kNone;
    }
    default:
      return WireFault::kBadType;
  }
}

/// Calls `visit(number, content)` for each field of a message, up to the first malformed one;
/// returns true if all are well-formed.
template <class Visit>
bool for_each_field(std::string_view message, Visit visit) {
  const std::uint8_t* p = begin_of(message);
  const std::uint8_t* const end = end_of(message);
  while (p < end) {
    std::uint64_t number = 0;
    WireContent content;
    if (read_field(p, end, number, content) != WireFault::kNone) return false;
    visit(number, content);
  }
  return true;
}

}  // namespace lookout::api::detail
