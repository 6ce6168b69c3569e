#include "lookout/api/time.h"

#include <fmt/format.h>

#include <cstddef>
#include <cstdint>

namespace lookout::api {
namespace {

using namespace std::chrono;

/// Reads fixed-width fields from the start of a text.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  bool digits(std::size_t count, int& out) {
    if (text_.size() < count) return false;
    out = 0;
    for (std::size_t i = 0; i < count; ++i) {
      if (text_[i] < '0' || text_[i] > '9') return false;
      out = out * 10 + (text_[i] - '0');
    }
    text_.remove_prefix(count);
    return true;
  }
  bool literal(char c) {
    if (text_.empty() || text_.front() != c) return false;
    text_.remove_prefix(1);
    return true;
  }
  /// One or more digits; digits after the sixth are ignored.
  bool fraction(int& micros) {
    micros = 0;
    std::size_t n = 0;
    for (; n < text_.size() && text_[n] >= '0' && text_[n] <= '9'; ++n) {
      if (n < 6) micros = micros * 10 + (text_[n] - '0');
    }
    for (std::size_t i = n; i < 6; ++i) micros *= 10;
    text_.remove_prefix(n);
    return n > 0;
  }
  bool done() const { return text_.empty(); }

 private:
  std::string_view text_;
};

/// Writes two digits and a character.
void put(std::string& out, std::int64_t value, char behind) {
  out += static_cast<char>('0' + value / 10);
  out += static_cast<char>('0' + value % 10);
  out += behind;
}

/// Ends with `end`. (Hand-written for speed: a pod in protobuf has ten times.)
std::string format_seconds(Time time, char end) {
  const auto day = floor<days>(time);
  const year_month_day date(day);
  const hh_mm_ss clock(floor<seconds>(time - day));
  const int year = static_cast<int>(date.year());
  std::string out;
  out.reserve(28);
  if (year >= 0 && year <= 9999) {
    out += static_cast<char>('0' + year / 1000);
    out += static_cast<char>('0' + year / 100 % 10);
    put(out, year % 100, '-');
  } else {
    out = fmt::format("{:04}-", year);
  }
  put(out, static_cast<unsigned>(date.month()), '-');
  put(out, static_cast<unsigned>(date.day()), 'T');
  put(out, clock.hours().count(), ':');
  put(out, clock.minutes().count(), ':');
  put(out, clock.seconds().count(), end);
  return out;
}

}  // namespace

std::optional<Time> parse_time(std::string_view text) {
  Reader in(text);
  int y = 0, mo = 0, d = 0, h = 0, mi = 0, s = 0, micros = 0;
  if (!(in.digits(4, y) && in.literal('-') && in.digits(2, mo) && in.literal('-') &&
        in.digits(2, d)))
    return std::nullopt;
  if (!in.literal('T')) return std::nullopt;
  if (!((in.digits(2, h) || in.digits(1, h)) && in.literal(':') && in.digits(2, mi) &&
        in.literal(':') && in.digits(2, s)))
    return std::nullopt;
  if ((in.literal('.') || in.literal(',')) && !in.fraction(micros)) return std::nullopt;
  int offset_minutes = 0;
  if (!in.literal('Z')) {
    const bool west = in.literal('-');
    if (!west && !in.literal('+')) return std::nullopt;
    int oh = 0, om = 0;
    if (!(in.digits(2, oh) && in.literal(':') && in.digits(2, om)) || oh > 24 || om > 60)
      return std::nullopt;
    offset_minutes = (oh * 60 + om) * (west ? -1 : 1);
  }
  const year_month_day date{year(y), month(static_cast<unsigned>(mo)),
                            day(static_cast<unsigned>(d))};
  if (!in.done() || !date.ok() || h > 23 || mi > 59 || s > 59) return std::nullopt;
  return Time(sys_days(date)) + hours(h) + minutes(mi - offset_minutes) + seconds(s) +
         microseconds(micros);
}

Time now() { return floor<microseconds>(system_clock::now()); }

std::string format_time(Time time) { return format_seconds(time, 'Z'); }

std::string format_micro_time(Time time) {
  return fmt::format("{}{:06}Z", format_seconds(time, '.'), (time - floor<seconds>(time)).count());
}

std::string format_age(seconds age) {
  const auto s = age.count();
  if (s < -1) return "<invalid>";
  if (s < 0) return "0s";
  if (s < 120) return fmt::format("{}s", s);
  const auto two = [](auto whole, char unit, auto rest, char rest_unit) {
    return rest == 0 ? fmt::format("{}{}", whole, unit)
                     : fmt::format("{}{}{}{}", whole, unit, rest, rest_unit);
  };
  const auto m = s / 60, h = m / 60, d = h / 24;
  if (m < 10) return two(m, 'm', s % 60, 's');
  if (m < 180) return fmt::format("{}m", m);
  if (h < 8) return two(h, 'h', m % 60, 'm');
  if (h < 48) return fmt::format("{}h", h);
  if (d < 8) return two(d, 'd', h % 24, 'h');
  if (d < 365 * 2) return fmt::format("{}d", d);
  if (d < 365 * 8) return two(d / 365, 'y', d % 365, 'd');
  return fmt::format("{}y", d / 365);
}

}  // namespace lookout::api
