// The records that dubbo-go keeps in an annotation.
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
  /// In the order of the annotation; of a key that occurs twice, the last value, in its first
  /// place.
  std::vector<Record> records = {};
  /// One line for each record that cannot be read, or one for the whole annotation.
  std::vector<std::string> defects = {};
  /// False: the whole cannot be read.
  bool readable = true;
};

/// Reads the base64url text of a JSON array of {"k": key, "v": value}. A record that is malformed
/// spoils none of the others.
Records decode_records(std::string_view annotation);

/// The annotation for these records.
std::string encode_records(const std::vector<Record>& records);

/// The annotation with one more record. Other records stay as they are, unreadable ones included;
/// a record with this key gets the value, in its place. Throws lookout::Error if the annotation as
/// a whole cannot be read: writing it anew would lose what others have put there.
std::string with_record(std::string_view annotation, const Record& record);
/// The annotation without the records of this key.
std::string without_record(std::string_view annotation, std::string_view key);

}  // namespace lookout::registry::dubbo
