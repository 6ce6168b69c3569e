// Gzip bodies, without a compressor.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace lookout::test {

/// RFC 1952, with the text in stored blocks (RFC 1951, 3.2.4).
inline std::string gzip(std::string_view text) {
  std::uint32_t crc = 0xFFFFFFFFu;
  for (const char c : text) {
    crc ^= static_cast<unsigned char>(c);
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1u) != 0 ? 0xEDB88320u : 0u);
  }
  crc = ~crc;

  std::string out("\x1f\x8b\x08\0\0\0\0\0\0\xff", 10);
  const auto put = [&out](std::uint32_t number, int bytes) {
    for (int i = 0; i < bytes; ++i) out += static_cast<char>(number >> (8 * i) & 0xFFu);
  };
  std::string_view rest = text;
  do {
    const std::string_view block = rest.substr(0, 0xFFFF);
    rest.remove_prefix(block.size());
    const auto size = static_cast<std::uint32_t>(block.size());
    put(rest.empty() ? 1 : 0, 1);
    put(size, 2);
    put(~size & 0xFFFFu, 2);
    out += block;
  } while (!rest.empty());
  put(crc, 4);
  put(static_cast<std::uint32_t>(text.size()), 4);
  return out;
}

}  // namespace lookout::test
