// TimeZone: the offsets of local time from UTC.
#pragma once

#include <chrono>
#include <memory>
#include <string_view>

#include "lookout/base/error.h"

namespace lookout {

/// An unknown time zone, or one whose file is malformed.
class TimeZoneError : public Error {
 public:
  using Error::Error;
};

/// A time zone of the system's database, as Go's time.Location. Cheap to copy; safe to use from any
/// thread.
class TimeZone {
 public:
  /// UTC.
  TimeZone();
  /// Reads the zone, "Europe/Berlin" or "UTC", from the directory that $ZONEINFO names, or else from
  /// /usr/share/zoneinfo (package tzdata). UTC needs no file. Throws TimeZoneError.
  static TimeZone load(std::string_view name);
  /// The content of a file of that database (TZif, RFC 8536). Throws TimeZoneError.
  static TimeZone parse(std::string_view tzif);

  /// The offset of local time from UTC at that time.
  std::chrono::seconds offset_at(std::chrono::sys_seconds time) const;

 private:
  struct Data;
  explicit TimeZone(std::shared_ptr<const Data> data) : data_(std::move(data)) {}

  std::shared_ptr<const Data> data_;  // null: UTC
};

}  // namespace lookout
