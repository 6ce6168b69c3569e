// RepeatedStrings: stores repeated strings of an object once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lookout/api/detail/encoding.h"

namespace lookout::api::detail {

/// Stores each string of an object once. Most objects repeat times, image and volume names, and
/// addresses. Each repetition becomes kTagAgain, see docs/object-format.md. The object's content
/// alone determines the replaced strings, so equal objects have equal bytes. Not thread-safe.
class RepeatedStrings {
 public:
  /// Examines an encoded object in which all strings are spelled out. Returns the number of bytes that
  /// can be saved.
  std::size_t find(Range plain);
  /// Copies the object that find() examined, without those bytes.
  void copy(Range plain, std::uint8_t* out) const;

 private:
  /// Shorter strings save little but take as long to find.
  static constexpr std::size_t kShortest = 16;
  /// The largest object. Two bytes can hold any distance in it.
  static constexpr std::size_t kLargest = 0xFFFF;
  static constexpr unsigned kPlaceBits = 8;
  static constexpr std::size_t kSize = 3;  // of kTagAgain and its distance

  /// A string that is replaced, by its position in the original.
  struct Again {
    std::uint32_t at;
    std::uint32_t size;
    std::uint16_t distance;  // to the first occurrence, in the result
  };
  /// A container that becomes smaller, by its final position.
  struct Head {
    std::uint32_t at;
    std::uint32_t lost;
  };
  /// A container that find() is in, and its parent.
  struct Open {
    const std::uint8_t* outer_end;
    bool outer_is_object;
    std::uint32_t head;
    std::uint32_t lost_before;
  };
  /// The last string with a hash: its position, and how much was lost before.
  struct Place {
    std::uint16_t at = 0;  // 0: none
    std::uint16_t lost_before = 0;
  };

  std::array<Place, std::size_t{1} << kPlaceBits> places_;
  std::vector<Open> open_;
  std::vector<Again> again_;
  std::vector<Head> heads_;
};

}  // namespace lookout::api::detail
