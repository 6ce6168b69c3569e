// Builds and parses protobuf messages.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/api/protobuf.h"

namespace lookout::api::test {

inline std::string varint(std::uint64_t value) {
  std::string out;
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  return out += static_cast<char>(value);
}

inline std::string number_field(unsigned field, std::uint64_t value) {
  return varint(field << 3) + varint(value);
}

inline std::string bytes_field(unsigned field, std::string_view bytes) {
  return varint(field << 3 | 2) + varint(bytes.size()) + std::string(bytes);
}

/// A message in the envelope of an object.
inline std::string enveloped(std::string_view api_version, std::string_view kind,
                             std::string_view message) {
  return std::string(kProtobufMagic) +
         bytes_field(1, bytes_field(1, api_version) + bytes_field(2, kind)) +
         bytes_field(2, message) + bytes_field(3, "") + bytes_field(4, "");
}

/// The contents of the length-delimited fields with this number in a well-formed message.
inline std::vector<std::string_view> fields_of(std::string_view message, unsigned wanted) {
  std::vector<std::string_view> out;
  const auto read = [&] {
    std::uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(message.front());
      message.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7Fu} << shift;
      if (byte < 0x80) return value;
    }
  };
  while (!message.empty()) {
    const std::uint64_t tag = read();
    const std::uint64_t value = read();
    if ((tag & 7) != 2) continue;
    if (tag >> 3 == wanted) out.push_back(message.substr(0, value));
    message.remove_prefix(value);
  }
  return out;
}

}  // namespace lookout::api::test
