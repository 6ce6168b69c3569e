// RepeatedValues: a cache of decoded objects, arrays and messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "lookout/api/value.h"

namespace lookout::api::detail {

/// Caches JSON texts of objects and arrays, and protobuf messages, with their flat form. The objects
/// of a list have much in common: probes, conditions, tolerations and managed fields are often equal
/// byte by byte. Comparing a text with a cached one is much faster than decoding it.
///
/// A text is looked up by a hash of its first bytes, then compared as a whole. There is one slot per
/// hash and a fixed amount of memory: newer values replace older ones. Not thread-safe.
class RepeatedValues {
 public:
  /// Shorter texts are decoded as fast as they are found.
  static constexpr std::size_t kShortest = 32;
  static constexpr std::size_t kLongest = 4096;
  /// Each level of nesting keeps a copy of its content.
  static constexpr std::size_t kMostLevels = 8;

  /// The kind of a text: JSON, or 1 + the type's number for a protobuf message.
  using Language = std::uint16_t;
  static constexpr Language kJson = 0;

  /// The thread's cache, for single objects such as watch events: a cache per watch would take too
  /// much memory.
  static RepeatedValues& of_this_thread();

  struct Found {
    std::size_t text_size = 0;  // 0: nothing found
    std::size_t levels = 0;     // as passed to keep()
    Value value;                // valid until the next keep()
  };

  /// The cached value whose text `rest` begins with.
  Found find(std::string_view rest, Language language = kJson);

  /// May cache a container: its text, including the brackets, and its encoded form.
  void keep(std::string_view text, std::string_view encoded, std::size_t levels,
            Language language = kJson);

  /// Call before each object, with the size of its text. False if too little repeats for lookups to
  /// pay off; they are retried after some objects.
  bool pays(std::size_t text_size);

 private:
  static constexpr unsigned kPlaceBits = 9;
  static constexpr std::size_t kPlaces = std::size_t{1} << kPlaceBits;
  static constexpr std::size_t kBytes = 128 * 1024;

  struct Place {
    std::uint32_t hash = 0;
    std::uint32_t begin = 0;  // in bytes_: the text, followed by the encoded form
    std::uint16_t text = 0;   // sizes; 0: empty
    std::uint16_t encoded = 0;
    std::uint16_t room = 0;
    std::uint8_t levels = 0;
    std::uint8_t missed = 0;  // lookups of other texts since it was last found
    Language language = kJson;
  };

  static std::uint32_t hash(std::string_view text, Language language);
  // (The upper bits of a product depend on all bits of its factors.)
  Place& place(std::uint32_t hash) { return places_[hash >> (32 - kPlaceBits)]; }

  std::vector<Place> places_ = std::vector<Place>(kPlaces);
  std::vector<char> bytes_;
  std::size_t decoded_ = 0;  // bytes of text since pays() last decided
  std::size_t found_ = 0;    // of these, found
  std::size_t resting_ = 0;  // objects
};

}  // namespace lookout::api::detail
