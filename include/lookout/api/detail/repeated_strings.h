// Strings that an object has more than once.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "lookout/api/detail/encoding.h"

namespace lookout::api::detail {

/// Writes an object's strings once: times, names of images and volumes, addresses come again in most
/// objects. Each further one becomes kTagAgain, see docs/object-format.md. Which strings do is
/// decided by the object's content alone, so equal objects stay equal bytes. Not thread-safe.
class RepeatedStrings {
 public:
  /// Looks at an encoded object that has each string written out, and returns how many bytes it
  /// loses.
  std::size_t find(Range plain);
  /// Copies the object that find() has looked at, without those bytes.
  void copy(Range plain, std::uint8_t* out) const;

 private:
  /// Shorter ones save little, and looking for them takes as long.
  static constexpr std::size_t kShortest = 16;
  /// Of an object. Two bytes lead back to any string.
  static constexpr std::size_t kLargest = 0xFFFF;
  static constexpr unsigned kPlaceBits = 8;
  static constexpr std::size_t kSize = 3;  // of kTagAgain and what is behind it

  /// A string that is not written, by its position before any was left out.
  struct Again {
    std::uint32_t at;
    std::uint32_t size;
    std::uint16_t distance;  // to the equal one, when all are left out
  };
  /// A container that becomes smaller, by its final position.
  struct Head {
    std::uint32_t at;
    std::uint32_t lost;
  };
  /// A container that find() is in, and the one around it.
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
