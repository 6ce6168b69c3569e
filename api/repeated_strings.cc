#include "lookout/api/detail/repeated_strings.h"

#include <cstring>

namespace lookout::api::detail {
namespace {

/// Writes a length in a fixed number of bytes.
void write_padded_varint(std::uint8_t* out, std::size_t bytes, std::uint64_t value) {
  for (; bytes > 1; --bytes, value >>= 7) *out++ = static_cast<std::uint8_t>(value | 0x80);
  *out = static_cast<std::uint8_t>(value);
}

}  // namespace

std::size_t RepeatedStrings::find(Range plain) {
  // The smallest container that can contain such a string.
  constexpr std::size_t kSmallest = kShortest + 2;
  again_.clear();
  heads_.clear();
  if (static_cast<std::size_t>(plain.end - plain.begin) > kLargest) return 0;
  places_.fill({});
  std::uint32_t lost = 0;
  const auto note = [&](const std::uint8_t* at, std::size_t size) {
    const auto position = static_cast<std::uint32_t>(at - plain.begin);
    const std::uint64_t hash =
        ((read_fixed<std::uint64_t>(at) ^ 0x2545F4914F6CDD1Du) * 0x9FB21C651E98DF25u) ^
        (read_fixed<std::uint64_t>(at + size - 8) * 0xA24BAED4963EE407u);
    Place& place = places_[(hash * 0xD6E8FEB86659FD93u) >> (64 - kPlaceBits)];
    // (Equal tags and lengths mean equal sizes.)
    if (place.at == 0 || place.at + size > position ||
        std::memcmp(plain.begin + place.at, at, size) != 0) {
      place = {static_cast<std::uint16_t>(position), static_cast<std::uint16_t>(lost)};
      return;
    }
    const std::uint32_t distance =
        (position - lost) - (place.at - std::uint32_t{place.lost_before});
    again_.push_back(
        {position, static_cast<std::uint32_t>(size), static_cast<std::uint16_t>(distance)});
    lost += static_cast<std::uint32_t>(size - kSize);
  };

  open_.clear();
  const std::uint8_t* p = plain.begin;
  const std::uint8_t* end = plain.end;  // of the open container
  bool in_object = false;
  for (;;) {
    while (p == end) {
      if (open_.empty()) return lost;
      const Open& closed = open_.back();
      if (lost != closed.lost_before) heads_.push_back({closed.head, lost - closed.lost_before});
      end = closed.outer_end;
      in_object = closed.outer_is_object;
      open_.pop_back();
    }
    // Nearly all keys have one byte.
    if (in_object) p = *p < kKeySymbol ? p + 1 : skip_key(p);
    const std::uint8_t tag = *p;
    const std::uint8_t* next = p + kValueSizes[tag];
    if (is_symbol_string(tag)) {  // as most are
      p = next;
      continue;
    }
    const bool long_container = tag == kTagObject || tag == kTagArray;
    if (long_container || (tag >= kTagShortObject && next - p >= std::ptrdiff_t{kSmallest})) {
      const bool is_object = tag == kTagObject || (tag >= kTagShortObject && tag < kTagShortArray);
      open_.push_back({end, in_object, static_cast<std::uint32_t>(p - plain.begin) - lost, lost});
      ++p;
      if (long_container) {
        const std::uint64_t length = read_varint(p);
        next = p + length;
      }
      end = next;
      in_object = is_object;
      continue;
    }
    if (next == p) next = skip_value(p);
    if (tag == kTagString || (tag >= kTagShortString + kShortest && tag < kTagSymbol))
      note(p, static_cast<std::size_t>(next - p));
    p = next;
  }
}

void RepeatedStrings::copy(Range plain, std::uint8_t* out) const {
  const std::uint8_t* from = plain.begin;
  std::uint8_t* to = out;
  const auto copy_to = [&](const std::uint8_t* end) {
    const auto size = static_cast<std::size_t>(end - from);
    std::memcpy(to, from, size);
    from = end;
    to += size;
  };
  for (const Again& again : again_) {
    copy_to(plain.begin + again.at);
    *to++ = kTagAgain;
    std::memcpy(to, &again.distance, sizeof again.distance);
    to += sizeof again.distance;
    from += again.size;
  }
  copy_to(plain.end);
  for (const Head& head : heads_) {
    std::uint8_t* const tag = out + head.at;
    if (*tag >= kTagShortObject) {
      *tag = static_cast<std::uint8_t>(*tag - head.lost);
      continue;
    }
    const std::uint8_t* behind = tag + 1;
    const std::uint64_t length = read_varint(behind);
    write_padded_varint(tag + 1, static_cast<std::size_t>(behind - (tag + 1)), length - head.lost);
  }
}

}  // namespace lookout::api::detail
