#include "api/repeated_values.h"

#include <cstring>

namespace lookout::api::detail {

RepeatedValues& RepeatedValues::of_this_thread() {
  thread_local RepeatedValues values;
  return values;
}

std::uint32_t RepeatedValues::hash(std::string_view text, Language language) {
  std::uint64_t words[kShortest / 8];
  std::memcpy(words, text.data(), sizeof words);
  std::uint64_t hash = (words[0] ^ language ^ 0x2545F4914F6CDD1Du) * 0xA24BAED4963EE407u;
  hash ^= (words[1] ^ hash >> 32) * 0x9FB21C651E98DF25u;
  hash ^= (words[2] ^ hash >> 32) * 0xD6E8FEB86659FD93u;
  hash ^= (words[3] ^ hash >> 32) * 0x9E3779B97F4A7C15u;
  return static_cast<std::uint32_t>(hash >> 32);
}

RepeatedValues::Found RepeatedValues::find(std::string_view rest, Language language) {
  if (rest.size() < kShortest) return {};
  const std::uint32_t key = hash(rest, language);
  Place& found = place(key);
  if (found.hash != key || found.language != language || found.text == 0 ||
      found.text > rest.size())
    return {};
  const char* const text = bytes_.data() + found.begin;
  if (std::memcmp(text, rest.data(), found.text) != 0) return {};
  found.missed = 0;
  found_ += found.text;
  return {found.text, found.levels,
          Value(reinterpret_cast<const std::uint8_t*>(text) + found.text)};
}

void RepeatedValues::keep(std::string_view text, std::string_view encoded, std::size_t levels,
                          Language language) {
  if (text.size() < kShortest || text.size() > kLongest || encoded.size() > kLongest ||
      levels > kMostLevels)
    return;
  const std::uint32_t key = hash(text, language);
  Place& kept = place(key);
  // Copying values that never repeat would cost more than it saves.
  constexpr std::uint8_t kPatience = 4;
  constexpr std::uint8_t kSeldom = 8;
  if (kept.hash != key || kept.language != language) {
    // The slot is in use. Keep its value if it was found recently; else replace it when a text with
    // this beginning occurs for the second time.
    if (kept.text != 0 && ++kept.missed < kPatience) return;
    kept.hash = key;
    kept.language = language;
    kept.text = 0;
    kept.missed = 0;
    return;
  }
  if (kept.text != 0 && ++kept.missed > kPatience && kept.missed % kSeldom != 0) return;
  const std::size_t size = text.size() + encoded.size();
  if (kept.room < size) {
    // Reserve space for a slightly longer text.
    const std::size_t room = size + size / 8;
    if (bytes_.size() + room > kBytes) {
      places_.assign(kPlaces, {});
      bytes_.clear();
    }
    kept.begin = static_cast<std::uint32_t>(bytes_.size());
    kept.room = static_cast<std::uint16_t>(room);
    bytes_.resize(bytes_.size() + room);
  }
  kept.hash = key;
  kept.language = language;
  kept.text = static_cast<std::uint16_t>(text.size());
  kept.encoded = static_cast<std::uint16_t>(encoded.size());
  kept.levels = static_cast<std::uint8_t>(levels);
  std::memcpy(bytes_.data() + kept.begin, text.data(), text.size());
  std::memcpy(bytes_.data() + kept.begin + text.size(), encoded.data(), encoded.size());
}

bool RepeatedValues::pays(std::size_t text_size) {
  constexpr std::size_t kTried = 64 * 1024;
  constexpr std::size_t kRest = 256;
  constexpr std::size_t kLeast = 16;  // at least one byte in this many must repeat
  if (resting_ > 0) return --resting_ == 0;
  if (decoded_ >= kTried) {
    if (found_ * kLeast < decoded_) resting_ = kRest;
    decoded_ = found_ = 0;
  }
  decoded_ += text_size;
  return resting_ == 0;
}

}  // namespace lookout::api::detail
