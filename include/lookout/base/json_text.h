// write_key() and write_text(): strings for RapidJSON's writers.
#pragma once

#include <rapidjson/rapidjson.h>

#include <string_view>

namespace lookout::base {

template <class Writer>
void write_key(Writer& writer, std::string_view key) {
  writer.Key(key.empty() ? "" : key.data(), static_cast<rapidjson::SizeType>(key.size()));
}

template <class Writer>
void write_text(Writer& writer, std::string_view text) {
  writer.String(text.empty() ? "" : text.data(), static_cast<rapidjson::SizeType>(text.size()));
}

/// A member that is a string.
template <class Writer>
void write_text(Writer& writer, std::string_view key, std::string_view text) {
  write_key(writer, key);
  write_text(writer, text);
}

}  // namespace lookout::base
