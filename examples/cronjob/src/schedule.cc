#include "schedule.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <iterator>
#include <span>
#include <string>
#include <vector>

namespace cronjob {
namespace {

using namespace std::chrono_literals;

constexpr int kMaxYears = 5;

constexpr std::array<std::string_view, 12> kMonths = {"jan", "feb", "mar", "apr", "may", "jun",
                                                      "jul", "aug", "sep", "oct", "nov", "dec"};
constexpr std::array<std::string_view, 7> kWeekdays = {"sun", "mon", "tue", "wed",
                                                       "thu", "fri", "sat"};

struct Field {
  std::string_view name;
  unsigned min = 0;
  unsigned max = 0;
  std::span<const std::string_view> names = {};  // of min and what follows
};
constexpr Field kMinute{"minute", 0, 59};
constexpr Field kHour{"hour", 0, 23};
constexpr Field kDay{"day of month", 1, 31};
constexpr Field kMonth{"month", 1, 12, kMonths};
constexpr Field kWeekday{"day of week", 0, 6, kWeekdays};

struct Values {
  std::uint64_t bits = 0;
  bool star = false;
};

[[noreturn]] void fail(const Field& field, std::string_view text, std::string_view why) {
  throw ScheduleError(fmt::format("{} \"{}\": {}", field.name, text, why));
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> out;
  for (;;) {
    const std::size_t end = text.find(separator);
    out.push_back(text.substr(0, end));
    if (end == std::string_view::npos) return out;
    text.remove_prefix(end + 1);
  }
}

std::optional<unsigned> number(std::string_view text) {
  unsigned out = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return out;
}

unsigned number_or_name(const Field& field, std::string_view text) {
  std::string lower(text);
  std::ranges::transform(lower, lower.begin(), [](unsigned char c) { return std::tolower(c); });
  const auto at = std::ranges::find(field.names, lower);
  if (at != field.names.end())
    return field.min + static_cast<unsigned>(std::distance(field.names.begin(), at));
  const auto out = number(text);
  if (!out) fail(field, text, "no number");
  return *out;
}

/// "*", "?", "7", "1-5", each with "/2" behind it or not.
Values read_range(const Field& field, std::string_view text) {
  const auto range_and_step = split(text, '/');
  const auto ends = split(range_and_step[0], '-');
  if (range_and_step.size() > 2) fail(field, text, "too many slashes");
  if (ends.size() > 2) fail(field, text, "too many hyphens");
  Values out;
  unsigned low = field.min;
  unsigned high = field.max;
  if (ends[0] == "*" || ends[0] == "?") {
    out.star = true;
  } else {
    low = number_or_name(field, ends[0]);
    high = ends.size() == 2 ? number_or_name(field, ends[1]) : low;
  }
  unsigned step = 1;
  if (range_and_step.size() == 2) {
    const auto given = number(range_and_step[1]);
    if (!given || *given == 0) fail(field, text, "the step is not a positive number");
    step = *given;
    // "5/10" is "5-59/10".
    if (ends.size() == 1) high = field.max;
    if (step > 1) out.star = false;
  }
  if (low < field.min || high > field.max)
    fail(field, text, fmt::format("not within {} to {}", field.min, field.max));
  if (low > high) fail(field, text, "the range ends before it begins");
  for (unsigned i = low; i <= high; i += std::min(step, field.max + 1)) out.bits |= 1ULL << i;
  return out;
}

Values read_field(const Field& field, std::string_view text) {
  Values out;
  for (const std::string_view part : split(text, ',')) {
    const Values range = read_range(field, part);
    out.bits |= range.bits;
    out.star = out.star || range.star;
  }
  return out;
}

/// Go's time.ParseDuration, for whole numbers: "1h30m", "90s".
std::chrono::seconds read_duration(std::string_view text) {
  std::chrono::seconds out{0};
  std::string_view rest = text;
  constexpr std::int64_t kMost = 10 * 365 * 24 * 3600LL;
  while (!rest.empty()) {
    std::int64_t count = 0;
    const auto [end, error] = std::from_chars(rest.data(), rest.data() + rest.size(), count);
    rest.remove_prefix(static_cast<std::size_t>(end - rest.data()));
    std::int64_t unit = 0;
    if (rest.starts_with("h")) unit = 3600;
    if (rest.starts_with("m")) unit = 60;
    if (rest.starts_with("s")) unit = 1;
    if (error != std::errc() || unit == 0 || count < 0 || count > kMost / unit) break;
    rest.remove_prefix(1);
    out += std::chrono::seconds(count * unit);
    if (rest.empty()) return std::max(out, std::chrono::seconds(1));
  }
  throw ScheduleError(fmt::format("@every \"{}\": expected a duration such as 1h30m", text));
}

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t") - begin + 1);
}

std::string_view fields_of(std::string_view descriptor) {
  if (descriptor == "@yearly" || descriptor == "@annually") return "0 0 1 1 *";
  if (descriptor == "@monthly") return "0 0 1 * *";
  if (descriptor == "@weekly") return "0 0 * * 0";
  if (descriptor == "@daily" || descriptor == "@midnight") return "0 0 * * *";
  if (descriptor == "@hourly") return "0 * * * *";
  throw ScheduleError(fmt::format("\"{}\" is not a descriptor", descriptor));
}

bool has(std::uint64_t bits, unsigned value) { return (bits >> value & 1) != 0; }

}  // namespace

Schedule Schedule::parse(std::string_view text) {
  Schedule out;
  if (text.starts_with("TZ=") || text.starts_with("CRON_TZ="))
    throw ScheduleError("time zones are not supported: schedules are in UTC");
  constexpr std::string_view kEvery = "@every ";
  if (text.starts_with(kEvery)) {
    out.every_ = read_duration(text.substr(kEvery.size()));
    return out;
  }
  if (text.starts_with("@")) text = fields_of(text);

  std::vector<std::string_view> fields;
  for (std::string_view rest = trimmed(text); !rest.empty();) {
    const std::size_t end = std::min(rest.find_first_of(" \t"), rest.size());
    fields.push_back(rest.substr(0, end));
    rest = trimmed(rest.substr(end));
  }
  constexpr std::size_t kFields = 5;
  if (fields.size() != kFields)
    throw ScheduleError(fmt::format("expected exactly 5 fields, found {}", fields.size()));
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

bool Schedule::day_matches(std::chrono::sys_days day) const {
  const std::chrono::year_month_day date(day);
  if (!has(months_, static_cast<unsigned>(date.month()))) return false;
  const bool of_month = has(days_, static_cast<unsigned>(date.day()));
  const bool of_week = has(weekdays_, std::chrono::weekday(day).c_encoding());
  return both_days_ ? of_month && of_week : of_month || of_week;
}

std::optional<Time> Schedule::next(Time time) const {
  if (every_) return time + *every_;
  const auto start = std::chrono::floor<std::chrono::minutes>(time) + 1min;
  const auto last_year =
      std::chrono::year_month_day(std::chrono::floor<std::chrono::days>(start)).year() +
      std::chrono::years(kMaxYears);
  auto day = std::chrono::floor<std::chrono::days>(start);
  auto first = start - day;  // of the day, for the first day only
  for (; std::chrono::year_month_day(day).year() <= last_year; day += std::chrono::days(1)) {
    if (day_matches(day)) {
      for (auto at = first; at < 24h; at += 1min) {
        const auto hour = std::chrono::floor<std::chrono::hours>(at);
        if (has(hours_, static_cast<unsigned>(hour.count())) &&
            has(minutes_, static_cast<unsigned>((at - hour).count()))) {
          return day + at;
        }
      }
    }
    first = 0min;
  }
  return std::nullopt;
}

}  // namespace cronjob
