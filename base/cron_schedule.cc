#include "lookout/base/cron_schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "lookout/base/ascii.h"
#include "lookout/base/numbers.h"

namespace lookout {
namespace {

using namespace std::chrono_literals;

constexpr std::chrono::years kFarthest{5};

constexpr std::array<std::string_view, 12> kMonths = {"jan", "feb", "mar", "apr", "may", "jun",
                                                      "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::array<std::string_view, 7> kWeekdays = {"sun", "mon", "tue", "wed",
                                                       "thu", "fri", "sat"};

struct Field {
  unsigned min = 0;
  unsigned max = 0;
  std::span<const std::string_view> names = {};  // of min and the following values
};
constexpr Field kMinute{0, 59};
constexpr Field kHour{0, 23};
constexpr Field kDay{1, 31};
constexpr Field kMonth{1, 12, kMonths};
constexpr Field kWeekday{0, 6, kWeekdays};

struct Values {
  std::uint64_t bits = 0;
  bool star = false;
};

template <class... Arguments>
[[noreturn]] void fail(fmt::format_string<Arguments...> format, Arguments&&... arguments) {
  throw CronScheduleError(fmt::format(format, std::forward<Arguments>(arguments)...));
}

std::vector<std::string_view> words(std::string_view text) {
  std::vector<std::string_view> out;
  for (std::string_view rest = base::trim(text); !rest.empty();) {
    const std::size_t end = std::min(rest.find_first_of(" \t\r\n"), rest.size());
    out.push_back(rest.substr(0, end));
    rest = base::trim(rest.substr(end));
  }
  return out;
}

unsigned read_number(std::string_view text) {
  std::string_view digits = text;
  if (digits.starts_with('+')) digits.remove_prefix(1);
  const auto out = base::parse_number<std::int64_t>(digits);
  if (!out || (digits.size() != text.size() && digits.starts_with('-'))) {
    const bool is_number =
        digits.find_first_not_of("0123456789", digits.starts_with('-') ? 1 : 0) ==
            std::string_view::npos &&
        !digits.empty() && digits != "-";
    fail("failed to parse int from {}: strconv.Atoi: parsing \"{}\": {}", text, text,
         is_number ? "value out of range" : "invalid syntax");
  }
  if (*out < 0) fail("negative number ({}) not allowed: {}", *out, text);
  return static_cast<unsigned>(std::min<std::int64_t>(*out, 1'000'000'000));
}

unsigned number_or_name(const Field& field, std::string_view text) {
  const auto at = std::ranges::find(field.names, base::lower_case(text));
  if (at == field.names.end()) return read_number(text);
  return field.min + static_cast<unsigned>(std::distance(field.names.begin(), at));
}

/// "*", "?", "7", "1-5", each optionally followed by a step such as "/2".
Values read_range(const Field& field, std::string_view text) {
  const auto range_and_step = base::split(text, '/');
  const auto ends = base::split(range_and_step[0], '-');
  Values out;
  unsigned low = field.min;
  unsigned high = field.max;
  if (ends[0] == "*" || ends[0] == "?") {
    out.star = true;
  } else {
    low = number_or_name(field, ends[0]);
    if (ends.size() > 2) fail("too many hyphens: {}", text);
    high = ends.size() == 2 ? number_or_name(field, ends[1]) : low;
  }
  unsigned step = 1;
  if (range_and_step.size() > 2) fail("too many slashes: {}", text);
  if (range_and_step.size() == 2) {
    step = read_number(range_and_step[1]);
    // "5/10" is "5-59/10".
    if (ends.size() == 1) high = field.max;
    if (step > 1) out.star = false;
  }
  if (low < field.min) fail("beginning of range ({}) below minimum ({}): {}", low, field.min, text);
  if (high > field.max) fail("end of range ({}) above maximum ({}): {}", high, field.max, text);
  if (low > high) fail("beginning of range ({}) beyond end of range ({}): {}", low, high, text);
  if (step == 0) fail("step of range should be a positive number: {}", text);
  for (unsigned i = low; i <= high; i += std::min(step, field.max + 1)) out.bits |= 1ULL << i;
  return out;
}

Values read_field(const Field& field, std::string_view text) {
  Values out;
  for (const std::string_view part : base::split(text, ',')) {
    if (part.empty()) continue;
    const Values range = read_range(field, part);
    out.bits |= range.bits;
    out.star = out.star || range.star;
  }
  return out;
}

/// Go's time.ParseDuration: "1h30m", "90s", "1.5h", "500ms". At least one second, as in Go's cron.
std::chrono::seconds read_every(std::string_view descriptor, std::string_view text) {
  struct Unit {
    std::string_view name;
    double seconds;
  };
  // (Units of two letters come before their prefixes.)
  constexpr Unit kUnits[] = {{"ns", 1e-9}, {"us", 1e-6}, {"\u00b5s", 1e-6}, {"\u03bcs", 1e-6},
                             {"ms", 1e-3}, {"h", 3600},  {"m", 60},         {"s", 1}};
  constexpr double kLargest = 9223372036.0;  // the maximum of Go's 64-bit nanoseconds
  const bool negative = text.starts_with('-');
  std::string_view rest = text;
  if (rest.starts_with('-') || rest.starts_with('+')) rest.remove_prefix(1);
  if (rest == "0") return 1s;
  double out = 0;
  while (!rest.empty()) {
    const std::size_t digits = std::min(rest.find_first_not_of("0123456789."), rest.size());
    const std::string_view number = rest.substr(0, digits);
    const auto count = base::parse_number<double>(number);
    rest.remove_prefix(digits);
    const auto* const unit = std::find_if(std::begin(kUnits), std::end(kUnits),
                                          [&](const Unit& u) { return rest.starts_with(u.name); });
    if (!count || std::count(number.begin(), number.end(), '.') > 1 || unit == std::end(kUnits))
      break;
    rest.remove_prefix(unit->name.size());
    out += *count * unit->seconds;
    if (out > kLargest) break;
    if (rest.empty()) {
      return std::max(1s, std::chrono::seconds(negative ? 0 : static_cast<std::int64_t>(out)));
    }
  }
  fail("failed to parse duration {}: time: invalid duration \"{}\"", descriptor, text);
}

std::string_view fields_of(std::string_view descriptor) {
  if (descriptor == "@yearly" || descriptor == "@annually") return "0 0 1 1 *";
  if (descriptor == "@monthly") return "0 0 1 * *";
  if (descriptor == "@weekly") return "0 0 * * 0";
  if (descriptor == "@daily" || descriptor == "@midnight") return "0 0 * * *";
  if (descriptor == "@hourly") return "0 * * * *";
  fail("unrecognized descriptor: {}", descriptor);
}

bool has(std::uint64_t bits, unsigned value) { return (bits >> value & 1) != 0; }

}  // namespace

CronSchedule CronSchedule::parse(std::string_view text, TimeZone zone) {
  CronSchedule out;
  out.zone_ = std::move(zone);
  if (text.empty()) fail("empty spec string");
  if (text.starts_with("TZ=") || text.starts_with("CRON_TZ=")) {
    const std::size_t end = std::min(text.find(' '), text.size());
    const std::string_view name = text.substr(0, end).substr(text.find('=') + 1);
    try {
      out.zone_ = TimeZone::load(name);
    } catch (const TimeZoneError& e) {
      fail("provided bad location {}: {}", name, e.what());
    }
    text = base::trim(text.substr(end));
  }
  if (text.starts_with('@')) {
    constexpr std::string_view kEvery = "@every ";
    if (text.starts_with(kEvery)) {
      out.every_ = read_every(text, text.substr(kEvery.size()));
      return out;
    }
    text = fields_of(text);
  }

  const auto fields = words(text);
  constexpr std::size_t kFields = 5;
  if (fields.size() != kFields)
    fail("expected exactly 5 fields, found {}: [{}]", fields.size(), fmt::join(fields, " "));
  out.minutes_ = read_field(kMinute, fields[0]).bits;
  out.hours_ = read_field(kHour, fields[1]).bits;
  const Values days = read_field(kDay, fields[2]);
  out.months_ = read_field(kMonth, fields[3]).bits;
  const Values weekdays = read_field(kWeekday, fields[4]);
  out.days_ = days.bits;
  out.weekdays_ = weekdays.bits;
  out.both_days_ = days.star || weekdays.star;
  return out;
}

bool CronSchedule::day_matches(std::chrono::sys_days day) const {
  const std::chrono::year_month_day date(day);
  if (!has(months_, static_cast<unsigned>(date.month()))) return false;
  const bool of_month = has(days_, static_cast<unsigned>(date.day()));
  const bool of_week = has(weekdays_, std::chrono::weekday(day).c_encoding());
  return both_days_ ? of_month && of_week : of_month || of_week;
}

std::optional<CronSchedule::Time> CronSchedule::next(Time time) const {
  if (every_) return time + *every_;
  // Round up to a whole minute of local time: historical offsets have seconds.
  Time at = std::chrono::floor<std::chrono::minutes>(time + zone_.offset_at(time)) + 1min -
            zone_.offset_at(time);
  const Time farthest = at + kFarthest;
  while (at <= farthest) {
    const Time local = at + zone_.offset_at(at);
    const auto day = std::chrono::floor<std::chrono::days>(local);
    const auto hour = std::chrono::floor<std::chrono::hours>(local - day);
    const auto minute = std::chrono::floor<std::chrono::minutes>(local - day - hour);
    if (!day_matches(day)) {
      // Clocks may change at the end of the day: step by hours near it.
      constexpr auto kNearEnd = 20h;
      at += std::max<std::chrono::seconds>(kNearEnd - hour, 1h) - minute;
    } else if (!has(hours_, static_cast<unsigned>(hour.count()))) {
      at += 1h - minute;
    } else if (!has(minutes_, static_cast<unsigned>(minute.count()))) {
      at += 1min;
    } else {
      return at;
    }
  }
  return std::nullopt;
}

std::optional<CronSchedule::Time> CronSchedule::last(Time after, Time until) const {
  if (every_) {
    const auto times = (until - after) / *every_;
    return times > 0 ? std::optional(after + times * *every_) : std::nullopt;
  }
  // Search a short time before `until` first, then longer ones.
  for (std::chrono::seconds span = 1h;; span *= 24) {
    const Time from = std::max(after, until - span);
    std::optional<Time> out;
    for (auto time = next(from); time && *time <= until; time = next(*time)) out = time;
    if (out || from == after) return out;
  }
}

}  // namespace lookout
