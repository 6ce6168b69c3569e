#include "bench/load/protobuf_wire.h"

namespace lookout::bench {
namespace {

bool read_varint(std::string_view& bytes, std::uint64_t& out) {
  out = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    if (bytes.empty()) return false;
    const auto byte = static_cast<unsigned char>(bytes.front());
    bytes.remove_prefix(1);
    out |= std::uint64_t{byte & 0x7Fu} << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

}  // namespace

void append_varint(std::string& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

std::size_t varint_size(std::uint64_t value) {
  std::size_t size = 1;
  for (; value >= 0x80; value >>= 7) ++size;
  return size;
}

// All fields here have numbers below 16 and are length-delimited.
void append_field_head(std::string& out, unsigned number, std::size_t size) {
  append_varint(out, number << 3 | 2u);
  append_varint(out, size);
}

void append_field(std::string& out, unsigned number, std::string_view content) {
  append_field_head(out, number, content.size());
  out += content;
}

std::size_t field_size(std::size_t content) { return 1 + varint_size(content) + content; }

std::string envelope_head(std::string_view group_version, std::string_view kind, std::size_t size) {
  std::string type;
  append_field(type, 1, group_version);
  append_field(type, 2, kind);
  std::string out(kProtobufMagic);
  append_field(out, 1, type);
  append_field_head(out, 2, size);
  return out;
}

std::optional<std::string> without_envelope(std::string_view bytes) {
  if (!bytes.starts_with(kProtobufMagic)) return std::nullopt;
  bytes.remove_prefix(kProtobufMagic.size());
  std::uint64_t key = 0;
  std::uint64_t size = 0;
  while (read_varint(bytes, key) && read_varint(bytes, size) && size <= bytes.size()) {
    if (key == (2 << 3 | 2)) return std::string(bytes.substr(0, size));
    bytes.remove_prefix(size);
  }
  return std::nullopt;
}

}  // namespace lookout::bench
