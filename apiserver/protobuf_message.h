// ProtobufMessage: a protobuf message that is being written from JSON.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "apiserver/json.h"

namespace lookout::apiserver {

class ProtobufMessage {
 public:
  void number(unsigned field, std::uint64_t value) {
    varint(field << 3);
    varint(value);
  }
  void bytes(unsigned field, std::string_view value) {
    varint(field << 3 | 2);
    varint(value.size());
    out_ += value;
  }
  void message(unsigned field, const ProtobufMessage& value) { bytes(field, value.out_); }
  void boolean(unsigned field, bool value) {
    if (value) number(field, 1);
  }
  /// Writes the member of the JSON with this name, if it exists.
  void text(unsigned field, const json::Value& object, std::string_view name) {
    if (const json::Value* value = json::find(object, name); value != nullptr && value->IsString())
      bytes(field, json::text_of(*value));
  }
  void texts(unsigned field, const json::Value& object, std::string_view name) {
    json::for_each(object, name, [&](const json::Value& one) {
      if (one.IsString()) bytes(field, json::text_of(one));
    });
  }
  void flag(unsigned field, const json::Value& object, std::string_view name) {
    const json::Value* value = json::find(object, name);
    boolean(field, value != nullptr && value->IsTrue());
  }
  const std::string& data() const { return out_; }

 private:
  void varint(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_ += static_cast<char>(value | 0x80);
    out_ += static_cast<char>(value);
  }

  std::string out_;
};

}  // namespace lookout::apiserver
