// The part of protobuf's wire format for envelopes and frames around encoded objects.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace lookout::bench {

inline constexpr std::string_view kProtobufMagic{"k8s\0", 4};

void append_varint(std::string& out, std::uint64_t value);
std::size_t varint_size(std::uint64_t value);
/// Appends the key and length of a field with a content of `size` bytes.
void append_field_head(std::string& out, unsigned number, std::size_t size);
void append_field(std::string& out, unsigned number, std::string_view content);
std::size_t field_size(std::size_t content);

/// The first bytes of the envelope (runtime.Unknown) around an object of this type, up to the
/// object, and its last bytes.
std::string envelope_head(std::string_view group_version, std::string_view kind, std::size_t size);
inline constexpr std::string_view kEnvelopeTail{"\x1a\0\x22\0", 4};

/// The object in an envelope; nullopt if the envelope is malformed.
std::optional<std::string> without_envelope(std::string_view bytes);

}  // namespace lookout::bench
