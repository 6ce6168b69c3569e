#include "apiserver/resources/formats.h"

#include <re2/re2.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "apiserver/resources/ip_address.h"
#include "apiserver/resources/request_uri.h"
#include "lookout/base/ascii.h"

namespace lookout::apiserver::resources {
namespace {

using re2::RE2;

using base::is_digit;
using base::is_hex_digit;
bool is_space(char c) { return c == ' ' || (c >= '\t' && c <= '\r' && c != '\v'); }

template <class Predicate>
bool all_of(std::string_view text, Predicate predicate) {
  return std::all_of(text.begin(), text.end(), predicate);
}

/// The text without the characters for which `dropped` is true.
template <class Predicate>
std::string without(std::string_view text, Predicate dropped) {
  std::string out(text);
  std::erase_if(out, dropped);
  return out;
}

bool match(std::string_view text, const RE2& pattern) {
  return RE2::FullMatch(re2::StringPiece(text.data(), text.size()), pattern);
}

// -------------------------------------------------------------------------------------- Identifiers

bool is_object_id(std::string_view text) { return text.size() == 24 && all_of(text, is_hex_digit); }

/// Groups of hexadecimal digits with optional dashes. `version` and `variants`: the allowed digits at
/// these positions; empty: any.
bool is_uuid(std::string_view text, std::string_view version, std::string_view variants) {
  constexpr std::array<std::size_t, 5> kGroups = {8, 4, 4, 4, 12};
  constexpr std::size_t kVersion = 12;
  constexpr std::size_t kVariant = 16;
  std::string digits;
  for (const std::size_t size : kGroups) {
    if (!digits.empty() && text.starts_with('-')) text.remove_prefix(1);
    const std::string_view group = text.substr(0, size);
    if (group.size() < size || !all_of(group, is_hex_digit)) return false;
    digits += group;
    text.remove_prefix(size);
  }
  const auto is_any = [](char digit, std::string_view allowed) {
    return allowed.empty() || allowed.find(base::lower_case(digit)) != std::string_view::npos;
  };
  return text.empty() && is_any(digits[kVersion], version) && is_any(digits[kVariant], variants);
}

std::string without_spaces_and_dashes(std::string_view text) {
  return without(text, [](char c) { return c == '-' || is_space(c); });
}

bool is_isbn10(std::string_view text) {
  const std::string number = without_spaces_and_dashes(text);
  if (number.size() != 10) return false;
  int sum = 0;
  for (std::size_t i = 0; i < number.size(); ++i) {
    const bool ten = i == 9 && number[i] == 'X';
    if (!ten && !is_digit(number[i])) return false;
    sum += static_cast<int>(i + 1) * (ten ? 10 : number[i] - '0');
  }
  return sum % 11 == 0;
}

bool is_isbn13(std::string_view text) {
  const std::string number = without_spaces_and_dashes(text);
  if (number.size() != 13 || !all_of(number, is_digit)) return false;
  int sum = 0;
  for (std::size_t i = 0; i < number.size(); ++i) sum += (number[i] - '0') * (i % 2 == 0 ? 1 : 3);
  return sum % 10 == 0;
}

/// The number ranges of card issuers.
bool is_issued(std::string_view number) {
  struct Issuer {
    std::string_view first;  // the smallest and the largest prefix
    std::string_view last;
    std::size_t size;
  };
  static constexpr std::array<Issuer, 12> kIssuers = {{{"4", "4", 13},
                                                       {"4", "4", 16},
                                                       {"51", "55", 16},
                                                       {"6011", "6011", 16},
                                                       {"65", "65", 16},
                                                       {"34", "34", 15},
                                                       {"37", "37", 15},
                                                       {"300", "305", 14},
                                                       {"36", "36", 14},
                                                       {"38", "38", 14},
                                                       {"1800", "1800", 15},
                                                       {"35", "35", 16}}};
  const auto fits = [&](const Issuer& issuer) {
    const std::string_view prefix = number.substr(0, issuer.first.size());
    return number.size() == issuer.size && prefix >= issuer.first && prefix <= issuer.last;
  };
  return fits({"2131", "2131", 15}) || std::any_of(kIssuers.begin(), kIssuers.end(), fits);
}

/// A number with Luhn's checksum. Other characters between its digits are ignored.
bool is_credit_card(std::string_view text) {
  const std::string number = without(text, [](char c) { return !is_digit(c); });
  if (!is_issued(number)) return false;
  int sum = 0;
  for (std::size_t i = 0; i < number.size(); ++i) {
    const bool doubled = (number.size() - i) % 2 == 0;
    const int digit = (number[i] - '0') * (doubled ? 2 : 1);
    sum += digit % 10 + digit / 10;
  }
  return sum % 10 == 0;
}

bool is_social_security_number(std::string_view text) {
  static const RE2 kPattern("[0-9]{3}[- ][0-9]{2}[- ][0-9]{4}");
  return match(text, kPattern);
}

// ----------------------------------------------------------------------------------- Colors and data

bool is_hex_color(std::string_view text) {
  if (text.starts_with('#')) text.remove_prefix(1);
  return (text.size() == 3 || text.size() == 6) && all_of(text, is_hex_digit);
}

bool is_rgb_color(std::string_view text) {
  constexpr int kMost = 255;
  static const RE2 kPattern(
      R"(rgb\(\s*(0|[1-9][0-9]{0,2})\s*,\s*(0|[1-9][0-9]{0,2})\s*,\s*(0|[1-9][0-9]{0,2})\s*\))");
  int red = 0;
  int green = 0;
  int blue = 0;
  return RE2::FullMatch(re2::StringPiece(text.data(), text.size()), kPattern, &red, &green,
                        &blue) &&
         red <= kMost && green <= kMost && blue <= kMost;
}

/// One or more groups of four characters; the last one may be padded.
bool is_base64(std::string_view text) {
  if (text.empty() || text.size() % 4 != 0) return false;
  for (int padding = 0; padding < 2 && text.ends_with('='); ++padding) text.remove_suffix(1);
  return all_of(text, [](char c) {
    return is_digit(c) || (base::lower_case(c) >= 'a' && base::lower_case(c) <= 'z') || c == '+' ||
           c == '/';
  });
}

bool is_anything(std::string_view) { return true; }

// --------------------------------------------------------------------------------------------- Times

bool is_date(std::string_view text) {
  static const RE2 kPattern("([0-9]{4})-([0-9]{2})-([0-9]{2})");
  int year = 0;
  unsigned month = 0;
  unsigned day = 0;
  return RE2::FullMatch(re2::StringPiece(text.data(), text.size()), kPattern, &year, &month,
                        &day) &&
         std::chrono::year_month_day(std::chrono::year(year), std::chrono::month(month),
                                     std::chrono::day(day))
             .ok();
}

/// Kubernetes accepts any character as the decimal point, and ignores everything after a second
/// "t".
bool is_date_time(std::string_view text) {
  static const RE2 kTime("([0-9]{2}):([0-9]{2}):([0-9]{2})(?:.[0-9]+)?(?:z|[+-][0-9]{2}:[0-9]{2})");
  const std::string lower = base::lower_case(text);
  const auto parts = base::split(lower, 't');
  if (parts.size() < 2 || !is_date(parts[0])) return false;
  int hour = 0;
  int minute = 0;
  int second = 0;
  return RE2::FullMatch(re2::StringPiece(parts[1].data(), parts[1].size()), kTime, &hour, &minute,
                        &second) &&
         hour <= 23 && minute <= 59 && second <= 59;
}

/// Scala's format: a number followed by a unit or a word that begins with one, anywhere in the text.
/// Values must fit into 64 bits.
bool has_scala_duration(std::string_view text) {
  static const RE2 kPart(R"(([0-9]+)\s*([A-Za-zµ]+))");
  static const RE2 kUnit(
      "ns|nano.*|us|µs|micro.*|ms|milli.*|s|sec.*|m|min.*|h|hr|hour.*|d|day.*|"
      "w|wk|week.*");
  re2::StringPiece rest(text.data(), text.size());
  std::string number;
  std::string unit;
  bool found = false;
  while (RE2::FindAndConsume(&rest, kPart, &number, &unit)) {
    std::int64_t value = 0;
    if (std::from_chars(number.data(), number.data() + number.size(), value).ec != std::errc{})
      return false;
    if (RE2::FullMatch(base::lower_case(unit), kUnit)) found = true;
  }
  return found;
}

bool is_duration(std::string_view text) {
  static const RE2 kGo(
      R"([-+]?(?:0|(?:(?:[0-9]{1,18}(?:\.[0-9]*)?|\.[0-9]+)(?:ns|us|µs|μs|ms|s|m|h))+))");
  return match(text, kGo) || has_scala_duration(text);
}

// ----------------------------------------------------------------------------------- Networks, names

bool has_no_zero(std::string_view text) { return text.find('\0') == std::string_view::npos; }

/// Numbers may begin with zeros, and the address may be embedded in an IPv6 address.
bool is_ipv4(std::string_view text) {
  return has_no_zero(text) && text.find('.') != std::string_view::npos &&
         IpAddress::parse(without_leading_zeros(text));
}

bool is_ipv6(std::string_view text) {
  const auto address = has_no_zero(text) ? IpAddress::parse(text) : std::nullopt;
  return address && address->family == 6;
}

bool is_cidr(std::string_view text) {
  return has_no_zero(text) && IpRange::parse(without_leading_zeros(text));
}

/// 6, 8 or 20 bytes: "00:00:5e:00:53:01", with dashes, or "0000.5e00.5301".
bool is_mac(std::string_view text) {
  static const RE2 kColons("[[:xdigit:]]{2}(?::[[:xdigit:]]{2})*");
  static const RE2 kDashes("[[:xdigit:]]{2}(?:-[[:xdigit:]]{2})*");
  static const RE2 kPoints(R"([[:xdigit:]]{4}(?:\.[[:xdigit:]]{4})*)");
  if (!match(text, kColons) && !match(text, kDashes) && !match(text, kPoints)) return false;
  const auto digits = std::count_if(text.begin(), text.end(), is_hex_digit);
  return digits == 12 || digits == 16 || digits == 40;
}

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

/// One label, in which a dash is allowed only after the first character; or several labels, of
/// which the last one, the top-level domain, has only letters. Letters and symbols may be from any
/// language.
bool is_hostname(std::string_view text) {
  constexpr std::size_t kMostBytes = 255;
  constexpr std::size_t kLabel = 63;
  static const RE2 kAlone(R"([0-9\pL\pS](?:-?[0-9\pL\pS]*)?)");
  static const RE2 kInner(R"([0-9\pL\pS](?:[-0-9\pL\pS]*[0-9\pL\pS])?)");
  static const RE2 kTop(R"(\pL+)");
  if (text.size() > kMostBytes) return false;
  auto labels = base::split(text, '.');
  const auto fits = [&](std::string_view label) { return label.size() <= kLabel; };
  if (!std::all_of(labels.begin(), labels.end(), fits)) return false;
  if (labels.size() == 1) return match(text, kAlone);
  const std::string_view top = labels.back();
  labels.pop_back();
  return count_characters(top) >= 2 && match(top, kTop) &&
         std::all_of(labels.begin(), labels.end(),
                     [](std::string_view label) { return match(label, kInner); });
}

bool is_name(std::string_view text) {
  static const RE2 kName("[a-z0-9](?:[-a-z0-9]*[a-z0-9])?");
  return match(text, kName);
}

bool is_short_name(std::string_view text) {
  constexpr std::size_t kMost = 63;
  return text.size() <= kMost && is_name(text);
}

bool is_long_name(std::string_view text) {
  constexpr std::size_t kMost = 253;
  if (text.size() > kMost) return false;
  const auto parts = base::split(text, '.');
  return std::all_of(parts.begin(), parts.end(), is_name);
}

/// One address of RFC 5322, with or without a name: "a@b.c", "A B <a@b.c>". Nested comments are not
/// supported.
bool is_email(std::string_view text) {
  constexpr const char* kSpace = R"([ \t]*)";
  constexpr const char* kAtom = R"([^\x00-\x20\x7f()<>\[\]:;@\\,."]+)";
  constexpr const char* kQuoted =
      R"("(?:[^\x00-\x08\x0a-\x1f\x7f"\\]|\\[^\x00-\x08\x0a-\x1f\x7f]))";
  static const RE2 kPattern([&] {
    const std::string space = kSpace;
    const std::string atom = kAtom;
    const std::string dots = atom + R"((?:\.)" + atom + ")*";
    const std::string comment = R"((?:\([^()\x00-\x08\x0a-\x1f\x7f]*\)[ \t]*)*)";
    const std::string local = "(?:" + dots + "|" + kQuoted + R"(+"))";
    const std::string domain = "(?:" + dots + R"(|\[([0-9A-Fa-f.:]+)\]))";
    const std::string address = space + local + "@" + space + domain;
    const std::string words =
        "(?:" + space + "(?:" + dots + R"(\.?|)" + kQuoted + R"(*"))" + space + ")*";
    return space + "(?:" + address + "|" + words + "<" + address + ">)" + space + comment;
  }());
  std::string plain;  // the IP address in place of a domain
  std::string named;
  if (!RE2::FullMatch(re2::StringPiece(text.data(), text.size()), kPattern, &plain, &named))
    return false;
  const std::string& literal = plain.empty() ? named : plain;
  return literal.empty() || IpAddress::parse(literal);
}

// --------------------------------------------------------------------------------------------- Table

struct Format {
  std::string_view name;  // without dashes
  bool (*check)(std::string_view text);
};

constexpr std::array<Format, 26> kFormats = {{
    {"bsonobjectid", is_object_id},
    {"byte", is_base64},
    {"cidr", is_cidr},
    {"creditcard", is_credit_card},
    {"date", is_date},
    {"datetime", is_date_time},
    {"duration", is_duration},
    {"email", is_email},
    {"hexcolor", is_hex_color},
    {"hostname", is_hostname},
    {"ipv4", is_ipv4},
    {"ipv6", is_ipv6},
    {"isbn", [](std::string_view text) { return is_isbn10(text) || is_isbn13(text); }},
    {"isbn10", is_isbn10},
    {"isbn13", is_isbn13},
    {"k8slongname", is_long_name},
    {"k8sshortname", is_short_name},
    {"mac", is_mac},
    {"password", is_anything},
    {"rgbcolor", is_rgb_color},
    {"ssn", is_social_security_number},
    {"uri", is_request_uri},
    {"uuid", [](std::string_view text) { return is_uuid(text, "", ""); }},
    {"uuid3", [](std::string_view text) { return is_uuid(text, "3", ""); }},
    {"uuid4", [](std::string_view text) { return is_uuid(text, "4", "89ab"); }},
    {"uuid5", [](std::string_view text) { return is_uuid(text, "5", "89ab"); }},
}};

/// Null for formats that Kubernetes does not support.
const Format* find_format(std::string_view format) {
  const std::string name = without(format, [](char c) { return c == '-'; });
  const auto* const known = std::find_if(kFormats.begin(), kFormats.end(),
                                         [&](const Format& one) { return one.name == name; });
  return known == kFormats.end() ? nullptr : known;
}

}  // namespace

bool has_format(std::string_view text, std::string_view format) {
  const Format* const known = find_format(format);
  return known == nullptr || known->check(text);
}

bool is_known_format(std::string_view type, std::string_view format) {
  if (type.empty() || type == "string") return find_format(format) != nullptr;
  if (type == "integer") return format == "int32" || format == "int64";
  return type == "number" && (format == "float" || format == "double");
}

}  // namespace lookout::apiserver::resources
