// etcd's responses as protobuf messages, for fake etcd servers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "lookout/api/detail/wire_reader.h"

namespace lookout::test {

/// A protobuf message, field by field.
class Proto {
 public:
  Proto& number(unsigned field, std::uint64_t value) {
    varint(field << 3);
    varint(value);
    return *this;
  }
  Proto& bytes(unsigned field, std::string_view value) {
    varint(field << 3 | 2);
    varint(value.size());
    text_.append(value);
    return *this;
  }
  Proto& message(unsigned field, const Proto& value) { return bytes(field, value.text_); }
  /// Another client's write.
  Proto& append(std::string_view bytes) {
    text_.append(bytes);
    return *this;
  }
  const std::string& text() const { return text_; }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) text_.push_back(static_cast<char>(value | 0x80));
    text_.push_back(static_cast<char>(value));
  }

  std::string text_;
};

/// The field of a received message, if present.
inline std::optional<api::detail::WireContent> field_of(std::string_view message,
                                                        std::uint64_t field) {
  std::optional<api::detail::WireContent> out;
  api::detail::for_each_field(message,
                              [&](std::uint64_t number, const api::detail::WireContent& content) {
                                if (number == field) out = content;
                              });
  return out;
}
inline std::string bytes_of(std::string_view message, std::uint64_t field) {
  const auto content = field_of(message, field);
  return content ? std::string(content->bytes) : std::string();
}
inline std::uint64_t number_of(std::string_view message, std::uint64_t field) {
  const auto content = field_of(message, field);
  return content ? content->number : 0;
}

inline Proto header(std::uint64_t revision, std::uint64_t cluster = 0) {
  Proto out;
  if (cluster != 0) out.number(1, cluster);
  return out.number(3, revision);
}
/// A response with only a header.
inline Proto answer(std::uint64_t revision, std::uint64_t cluster = 0) {
  return Proto().message(1, header(revision, cluster));
}
inline Proto key_value(std::string_view key, std::string_view value, std::uint64_t mod_revision,
                       std::uint64_t create_revision) {
  Proto out;
  out.bytes(1, key).number(2, create_revision).number(3, mod_revision).number(4, 1);
  return out.bytes(5, value);
}
inline Proto put_event(const Proto& kv) { return Proto().message(2, kv); }
inline Proto put_event(const Proto& kv, const Proto& previous) {
  return Proto().message(2, kv).message(3, previous);
}
inline Proto delete_event(const Proto& kv, const Proto& previous) {
  return Proto().number(1, 1).message(2, kv).message(3, previous);
}
inline Proto created(std::uint64_t revision) { return answer(revision).number(3, 1); }
/// A watch that was not created, or has ended.
inline Proto canceled(std::string_view reason, std::uint64_t compact_revision = 0,
                      bool created = false) {
  Proto out = answer(1);
  if (created) out.number(3, 1);
  out.number(4, 1);
  if (compact_revision != 0) out.number(5, compact_revision);
  return out.bytes(6, reason);
}

/// The content of a watch request.
inline std::string create_of(std::string_view watch_request) { return bytes_of(watch_request, 1); }
inline std::uint64_t start_of(std::string_view watch_request) {
  return number_of(create_of(watch_request), 3);
}

}  // namespace lookout::test
