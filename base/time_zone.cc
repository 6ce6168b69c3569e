#include "lookout/base/time_zone.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "lookout/base/ascii.h"
#include "lookout/base/file_reader.h"

namespace lookout {
namespace {

using std::chrono::days;
using std::chrono::hours;
using std::chrono::seconds;
using std::chrono::sys_days;
using std::chrono::sys_seconds;

[[noreturn]] void fail(std::string_view why) {
  throw TimeZoneError(fmt::format("malformed time zone file: {}", why));
}

/// The day and local time at which summer time begins or ends, in POSIX notation.
struct Change {
  enum class Kind { kMonth, kJulian, kDayOfYear };
  Kind kind = Kind::kMonth;
  unsigned month = 0;  // kMonth: M<month>.<week>.<weekday>, week 5 is the last one
  unsigned week = 0;   //
  unsigned day = 0;    // of the week; kJulian: 1 to 365 without February 29; kDayOfYear: 0 to 365
  seconds time{2 * 3600};

  /// In local time.
  seconds in(std::chrono::year year) const;
};

seconds Change::in(std::chrono::year year) const {
  const sys_days new_year(year / 1 / 1);
  sys_days date = new_year;
  if (kind == Kind::kMonth) {
    const auto of_month = year / std::chrono::month(month);
    const std::chrono::weekday weekday(day);
    date = week == 5 ? sys_days(of_month / weekday[std::chrono::last])
                     : sys_days(of_month / weekday[week]);
  } else if (kind == Kind::kDayOfYear) {
    date += days(day);
  } else {
    const bool after_february = year.is_leap() && day >= 60;
    date += days(day - 1 + (after_february ? 1 : 0));
  }
  return date.time_since_epoch() + time;
}

/// The rule after the last transition of a file: "CET-1CEST,M3.5.0,M10.5.0/3".
struct Rule {
  seconds standard{0};
  struct Summer {
    seconds offset{0};
    Change begin;
    Change end;
  };
  std::optional<Summer> summer;

  seconds offset_at(sys_seconds time) const;
};

seconds Rule::offset_at(sys_seconds time) const {
  if (!summer) return standard;
  const seconds now = time.time_since_epoch();
  const std::chrono::year_month_day local(std::chrono::floor<days>(sys_seconds(now + standard)));
  const seconds begin = summer->begin.in(local.year()) - standard;
  const seconds end = summer->end.in(local.year()) - summer->offset;
  // In the southern hemisphere, summer time spans the end of the year.
  const bool is_summer = begin < end ? begin <= now && now < end : now < end || begin <= now;
  return is_summer ? summer->offset : standard;
}

class RuleReader {
 public:
  explicit RuleReader(std::string_view text) : rest_(text) {}

  Rule read() {
    Rule out;
    skip_name();
    out.standard = -read_time();
    if (rest_.empty()) return out;
    skip_name();
    Rule::Summer summer;
    summer.offset = out.standard + hours(1);
    if (!rest_.empty() && rest_.front() != ',') summer.offset = -read_time();
    summer.begin = read_change();
    summer.end = read_change();
    if (!rest_.empty()) fail("its rule is followed by other text");
    out.summer = summer;
    return out;
  }

 private:
  void skip_name() {
    const bool quoted = take('<');
    const std::size_t end =
        quoted ? rest_.find('>') : std::min(rest_.find_first_of("+-,0123456789"), rest_.size());
    if (end == std::string_view::npos || end == 0) fail("its rule has no name");
    rest_.remove_prefix(end + (quoted ? 1 : 0));
  }
  bool take(char c) {
    if (rest_.empty() || rest_.front() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  unsigned read_number(unsigned least, unsigned most) {
    unsigned out = 0;
    std::size_t length = 0;
    while (length < rest_.size() && length < 3 && rest_[length] >= '0' && rest_[length] <= '9')
      out = out * 10 + static_cast<unsigned>(rest_[length++] - '0');
    if (length == 0 || out < least || out > most) fail("a number of its rule is out of bounds");
    rest_.remove_prefix(length);
    return out;
  }
  /// "-3:30:15"; RFC 8536 allows up to 167 hours.
  seconds read_time() {
    const bool negative = take('-');
    if (!negative) take('+');
    seconds out = hours(read_number(0, 167));
    if (take(':')) out += std::chrono::minutes(read_number(0, 59));
    if (take(':')) out += seconds(read_number(0, 59));
    return negative ? -out : out;
  }
  Change read_change() {
    Change out;
    if (!take(',')) fail("its rule has no days");
    if (take('M')) {
      out.month = read_number(1, 12);
      if (!take('.')) fail("its rule has no week");
      out.week = read_number(1, 5);
      if (!take('.')) fail("its rule has no day of the week");
      out.day = read_number(0, 6);
    } else if (take('J')) {
      out.kind = Change::Kind::kJulian;
      out.day = read_number(1, 365);
    } else {
      out.kind = Change::Kind::kDayOfYear;
      out.day = read_number(0, 365);
    }
    if (take('/')) out.time = read_time();
    return out;
  }

  std::string_view rest_;
};

class Bytes {
 public:
  explicit Bytes(std::string_view text) : rest_(text) {}

  std::string_view take(std::size_t count) {
    if (rest_.size() < count) fail("it ends too early");
    const std::string_view out = rest_.substr(0, count);
    rest_.remove_prefix(count);
    return out;
  }
  /// Big endian, two's complement.
  std::int64_t number(std::size_t bytes) {
    std::uint64_t out = 0;
    for (const char c : take(bytes)) out = out << 8 | static_cast<unsigned char>(c);
    if (bytes == 4) return static_cast<std::int32_t>(static_cast<std::uint32_t>(out));
    return static_cast<std::int64_t>(out);
  }
  std::string_view rest() const { return rest_; }

 private:
  std::string_view rest_;
};

/// The version, and the counts of what follows.
struct Header {
  char version;
  std::size_t utc_flags;
  std::size_t standard_flags;
  std::size_t leap_seconds;
  std::size_t transitions;
  std::size_t types;
  std::size_t characters;

  std::size_t size(std::size_t time_bytes) const {
    return transitions * (time_bytes + 1) + types * 6 + characters +
           leap_seconds * (time_bytes + 4) + standard_flags + utc_flags;
  }
};

Header read_header(Bytes& bytes) {
  if (bytes.take(4) != "TZif") fail("it does not begin with TZif");
  const char version = bytes.take(1).front();
  bytes.take(15);
  const auto count = [&] {
    const std::int64_t value = bytes.number(4);
    if (value < 0 || value > 1'000'000) fail("a count is out of bounds");
    return static_cast<std::size_t>(value);
  };
  const Header header{.version = version,
                      .utc_flags = count(),
                      .standard_flags = count(),
                      .leap_seconds = count(),
                      .transitions = count(),
                      .types = count(),
                      .characters = count()};
  if (header.types == 0) fail("it has no types");
  return header;
}

bool is_name(std::string_view name) {
  if (name.empty() || name.front() == '/' || name.find("..") != std::string_view::npos)
    return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return base::is_alnum(c) || c == '/' || c == '_' || c == '-' || c == '+' || c == '.';
  });
}

}  // namespace

struct TimeZone::Data {
  struct Transition {
    std::int64_t at = 0;
    seconds offset{0};
  };
  seconds first{0};                     // before all transitions
  std::vector<Transition> transitions;  // in order
  std::optional<Rule> rule;             // after them
};

TimeZone::TimeZone() = default;

TimeZone TimeZone::load(std::string_view name) {
  if (name == "UTC") return {};
  if (!is_name(name)) throw TimeZoneError("time: invalid location name");
  const char* const directory = std::getenv("ZONEINFO");  // NOLINT(concurrency-mt-unsafe)
  const FileContent file = read_small_file(
      fmt::format("{}/{}", directory != nullptr ? directory : "/usr/share/zoneinfo", name),
      FileKind::kRegular);
  if (!file) throw TimeZoneError(fmt::format("unknown time zone {}", name));
  return parse(file.text);
}

TimeZone TimeZone::parse(std::string_view tzif) {
  Bytes bytes(tzif);
  std::size_t time_bytes = 4;
  Header header = read_header(bytes);
  const bool has_second_part = header.version >= '2';
  if (has_second_part) {
    // The second part repeats the data with 64-bit times.
    bytes.take(header.size(time_bytes));
    header = read_header(bytes);
    time_bytes = 8;
  }
  auto data = std::make_shared<Data>();
  for (std::size_t i = 0; i < header.transitions; ++i) {
    data->transitions.push_back({bytes.number(time_bytes), {}});
    if (i > 0 && data->transitions[i - 1].at >= data->transitions[i].at)
      fail("its transitions are not in order");
  }
  const std::string_view types = bytes.take(header.transitions);
  std::vector<seconds> offsets;
  for (std::size_t i = 0; i < header.types; ++i) {
    offsets.emplace_back(bytes.number(4));
    bytes.take(2);
    if (offsets.back() > hours(26) || offsets.back() < -hours(26)) fail("an offset is too large");
  }
  for (std::size_t i = 0; i < header.transitions; ++i) {
    const auto type = static_cast<unsigned char>(types[i]);
    if (type >= offsets.size()) fail("a transition has no type");
    data->transitions[i].offset = offsets[type];
  }
  data->first = offsets.front();
  if (has_second_part) {
    bytes.take(header.characters + header.leap_seconds * (time_bytes + 4) + header.standard_flags +
               header.utc_flags);
    if (bytes.take(1) != "\n") fail("its rule does not follow its data");
    const std::string_view footer = bytes.rest().substr(0, bytes.rest().find('\n'));
    if (!footer.empty()) data->rule = RuleReader(footer).read();
  }
  return TimeZone(std::move(data));
}

seconds TimeZone::offset_at(sys_seconds time) const {
  if (data_ == nullptr) return seconds(0);
  const auto& transitions = data_->transitions;
  const std::int64_t now = time.time_since_epoch().count();
  const auto after = std::upper_bound(
      transitions.begin(), transitions.end(), now,
      [](std::int64_t value, const Data::Transition& transition) { return value < transition.at; });
  if (after == transitions.end() && data_->rule) return data_->rule->offset_at(time);
  return after == transitions.begin() ? data_->first : std::prev(after)->offset;
}

}  // namespace lookout
