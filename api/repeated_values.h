// Values that come again: what objects and arrays, or messages, were decoded into before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "lookout/api/value.h"

namespace lookout::api::detail {

/// Remembers the texts of objects and arrays in JSON, and protobuf messages, beside their encoded
/// form. The objects of a list have much in common: probes, conditions, tolerations, managed fields
/// are often the same to the byte. Comparing such a text with the one before takes a small part of
/// the time of decoding it.
///
/// A text is looked up by its first bytes alone; then it must be equal as a whole. There is one
/// place for each hash of those bytes, and a fixed amount of memory: what comes later replaces what
/// was there. Not thread-safe.
class RepeatedValues {
 public:
  /// Shorter texts are decoded as fast as they are found; longer ones seldom repeat.
  static constexpr std::size_t kShortest = 32;
  static constexpr std::size_t kLongest = 4096;
  /// Each level of nesting keeps a copy of what is inside of it.
  static constexpr std::size_t kMostLevels = 8;

  /// What a text is: JSON, or a protobuf message of a type; its number in the table of types and 1.
  using Language = std::uint16_t;
  static constexpr Language kJson = 0;

  /// The one for what comes alone, as events of watches do: one for each watch would take too much
  /// memory. It lives as long as the thread.
  static RepeatedValues& of_this_thread();

  struct Found {
    std::size_t text_size = 0;  // 0: nothing found
    std::size_t levels = 0;     // as keep() was told
    Value value;                // good until the next keep()
  };

  /// The value with whose text `rest` begins.
  Found find(std::string_view rest, Language language = kJson);

  /// Keeps a container, perhaps: its text, from bracket to bracket, and its encoded form.
  void keep(std::string_view text, std::string_view encoded, std::size_t levels,
            Language language = kJson);

  /// To be called before each object, with the size of its text: false if so little repeats that
  /// looking for it does not pay. It is tried again after some objects.
  bool pays(std::size_t text_size);

 private:
  static constexpr unsigned kPlaceBits = 9;
  static constexpr std::size_t kPlaces = std::size_t{1} << kPlaceBits;
  static constexpr std::size_t kBytes = 128 * 1024;

  struct Place {
    std::uint32_t hash = 0;
    std::uint32_t begin = 0;  // in bytes_: the text, behind it the encoded form
    std::uint16_t text = 0;   // sizes; 0: nothing is here
    std::uint16_t encoded = 0;
    std::uint16_t room = 0;
    std::uint8_t levels = 0;
    std::uint8_t missed = 0;  // how often another text was looked for, since it was found last
    Language language = kJson;
  };

  static std::uint32_t hash(std::string_view text, Language language);
  // (The upper bits of a product depend on all bits of its factors.)
  Place& place(std::uint32_t hash) { return places_[hash >> (32 - kPlaceBits)]; }

  std::vector<Place> places_ = std::vector<Place>(kPlaces);
  std::vector<char> bytes_;
  std::size_t decoded_ = 0;  // bytes of text, since pays() has decided last
  std::size_t found_ = 0;    // of these
  std::size_t resting_ = 0;  // objects
};

}  // namespace lookout::api::detail
