// Record: an entry in dubbo-go's annotation.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace lookout::registry::dubbo {

/// A key (for dubbo: a path such as "/dubbo/com.example.User/providers/dubbo%3A%2F%2F...") and a
/// value.
struct Record {
  std::string key;
  std::string value;
  friend bool operator==(const Record&, const Record&) = default;
};

/// The content of an annotation.
struct Records {
  /// In the order of the annotation; if a key occurs twice, the last value at the first position.
  std::vector<Record> records = {};
  /// One line for each record that cannot be read, or one for the whole annotation.
  std::vector<std::string> defects = {};
  /// False: the annotation as a whole is not readable.
  bool readable = true;
};

/// Parses the base64url text of a JSON array of {"k": key, "v": value}. A malformed record does not
/// affect the others.
Records decode_records(std::string_view annotation);

/// The annotation for these records. Throws InvalidArgument if one is not UTF-8; so does
/// with_record().
std::string encode_records(const std::vector<Record>& records);

/// Returns the annotation with one more record. Other records stay as they are, including
/// unreadable ones; a record with this key gets the value, at its position. Throws lookout::Error
/// if the annotation as a whole is not readable: rewriting it would lose the records of others.
std::string with_record(std::string_view annotation, const Record& record);
/// The annotation without the records of this key.
std::string without_record(std::string_view annotation, std::string_view key);

}  // namespace lookout::registry::dubbo
