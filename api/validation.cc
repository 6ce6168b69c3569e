#include "lookout/api/validation.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>

#include "lookout/api/detail/go_text.h"
#include "lookout/base/ascii.h"

namespace lookout::api::validation {
namespace {

using base::is_alnum;
using base::is_digit;

bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_lower_alnum(char c) { return is_lower(c) || is_digit(c); }

// The rules as regular expressions: printed in messages, checked by hand.
#define LOOKOUT_DNS1123_LABEL "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
#define LOOKOUT_LABEL_KEY "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
constexpr std::string_view kDns1123Label = LOOKOUT_DNS1123_LABEL;
constexpr std::string_view kDns1123Subdomain =
    LOOKOUT_DNS1123_LABEL "(\\." LOOKOUT_DNS1123_LABEL ")*";
constexpr std::string_view kDns1035Label = "[a-z]([-a-z0-9]*[a-z0-9])?";
constexpr std::string_view kLabelKey = LOOKOUT_LABEL_KEY;
constexpr std::string_view kLabelValue = "(" LOOKOUT_LABEL_KEY ")?";
constexpr std::string_view kConfigMapKey = "[-._a-zA-Z0-9]+";
#undef LOOKOUT_DNS1123_LABEL
#undef LOOKOUT_LABEL_KEY

constexpr std::size_t kMaxLabel = 63;
constexpr std::size_t kMaxSubdomain = 253;

bool matches_dns1123_label(std::string_view value) {
  return !value.empty() && is_lower_alnum(value.front()) && is_lower_alnum(value.back()) &&
         std::all_of(value.begin(), value.end(),
                     [](char c) { return is_lower_alnum(c) || c == '-'; });
}

bool matches_dns1123_subdomain(std::string_view value) {
  for (;;) {
    const std::size_t dot = value.find('.');
    if (!matches_dns1123_label(value.substr(0, dot))) return false;
    if (dot == std::string_view::npos) return true;
    value.remove_prefix(dot + 1);
  }
}

bool matches_label_key(std::string_view value) {
  return !value.empty() && is_alnum(value.front()) && is_alnum(value.back()) &&
         std::all_of(value.begin(), value.end(),
                     [](char c) { return is_alnum(c) || c == '-' || c == '_' || c == '.'; });
}

std::string pattern_message(std::string_view what, std::string_view pattern,
                            std::initializer_list<std::string_view> examples) {
  std::string list;
  for (const auto example : examples) {
    if (!list.empty()) list += " or ";
    list += fmt::format("'{}', ", example);
  }
  return fmt::format("{} (e.g. {}regex used for validation is '{}')", what, list, pattern);
}

// Kubernetes is changing from "characters" to "bytes"; newer rules use "bytes".
std::string length_message(std::size_t max, std::string_view unit) {
  return fmt::format("must be no more than {} {}", max, unit);
}

Messages check_subdomain(std::string_view value, std::string_view unit) {
  Messages out;
  if (value.size() > kMaxSubdomain) out.push_back(length_message(kMaxSubdomain, unit));
  if (!matches_dns1123_subdomain(value)) {
    out.push_back(
        pattern_message("a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
                        "characters, '-' or '.', and must start and end with an alphanumeric "
                        "character",
                        kDns1123Subdomain, {"example.com"}));
  }
  return out;
}

StatusCause cause(std::string_view reason, std::string_view field, std::string message,
                  std::string_view detail) {
  if (!detail.empty()) message.append(": ").append(detail);
  return {std::string(reason), std::move(message), std::string(field)};
}

}  // namespace

Messages check_qualified_name(std::string_view value) {
  const auto rule = [] {
    return pattern_message(
        "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
        "alphanumeric character",
        kLabelKey, {"MyName", "my.name", "123-abc"});
  };
  Messages out;
  std::string_view name = value;
  if (const std::size_t slash = value.find('/'); slash != std::string_view::npos) {
    const std::string_view prefix = value.substr(0, slash);
    name = value.substr(slash + 1);
    if (name.find('/') != std::string_view::npos) {
      return {"a valid label key " + rule() +
              " with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"};
    }
    if (prefix.empty()) {
      out.emplace_back("prefix part must be non-empty");
    } else {
      for (const auto& message : check_subdomain(prefix, "bytes"))
        out.push_back("prefix part " + message);
    }
  }
  if (name.empty()) {
    out.emplace_back("name part must be non-empty");
  } else if (name.size() > kMaxLabel) {
    out.push_back("name part " + length_message(kMaxLabel, "bytes"));
  }
  if (!matches_label_key(name)) out.push_back("name part " + rule());
  return out;
}

Messages check_label_value(std::string_view value) {
  Messages out;
  if (value.size() > kMaxLabel) out.push_back(length_message(kMaxLabel, "bytes"));
  if (!value.empty() && !matches_label_key(value)) {
    out.push_back(
        pattern_message("a valid label must be an empty string or consist of alphanumeric "
                        "characters, '-', '_' or '.', and must start and end with an alphanumeric "
                        "character",
                        kLabelValue, {"MyValue", "my_value", "12345"}));
  }
  return out;
}

Messages check_dns1123_label(std::string_view value) {
  Messages out;
  if (value.size() > kMaxLabel) out.push_back(length_message(kMaxLabel, "characters"));
  if (matches_dns1123_label(value)) return out;
  if (matches_dns1123_subdomain(value)) {
    out.emplace_back("must not contain dots");
  } else {
    out.push_back(
        pattern_message("a lowercase RFC 1123 label must consist of lower case alphanumeric "
                        "characters or '-', and must start and end with an alphanumeric character",
                        kDns1123Label, {"my-name", "123-abc"}));
  }
  return out;
}

Messages check_dns1123_subdomain(std::string_view value) {
  return check_subdomain(value, "characters");
}

Messages check_dns1035_label(std::string_view value) {
  Messages out;
  if (value.size() > kMaxLabel) out.push_back(length_message(kMaxLabel, "characters"));
  if (!matches_dns1123_label(value) || !is_lower(value.front())) {
    out.push_back(
        pattern_message("a DNS-1035 label must consist of lower case alphanumeric characters or "
                        "'-', start with an alphabetic character, and end with an alphanumeric "
                        "character",
                        kDns1035Label, {"my-name", "abc-123"}));
  }
  return out;
}

Messages check_path_segment_name(std::string_view value) {
  if (value == "." || value == "..") return {fmt::format("may not be '{}'", value)};
  Messages out;
  for (const char c : {'/', '%'}) {
    if (value.find(c) != std::string_view::npos)
      out.push_back(fmt::format("may not contain '{}'", c));
  }
  return out;
}

Messages check_config_map_key(std::string_view value) {
  Messages out;
  if (value.size() > kMaxSubdomain) out.push_back(length_message(kMaxSubdomain, "characters"));
  if (value.empty() || !std::all_of(value.begin(), value.end(), [](char c) {
        return is_alnum(c) || c == '-' || c == '_' || c == '.';
      })) {
    out.push_back(pattern_message(
        "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
        kConfigMapKey, {"key.name", "KEY_NAME", "key-name"}));
  }
  if (value == "." || value == "..") {
    out.push_back(fmt::format("must not be '{}'", value));
  } else if (value.starts_with("..")) {
    out.emplace_back("must not start with '..'");
  }
  return out;
}

StatusCause required(std::string_view field, std::string_view detail) {
  return cause("FieldValueRequired", field, "Required value", detail);
}

StatusCause invalid(std::string_view field, std::string_view value, std::string_view detail) {
  return cause("FieldValueInvalid", field, "Invalid value: " + detail::quote(value), detail);
}

StatusCause invalid(std::string_view field, std::int64_t value, std::string_view detail) {
  return cause("FieldValueInvalid", field, fmt::format("Invalid value: {}", value), detail);
}

StatusCause forbidden(std::string_view field, std::string_view detail) {
  return cause("FieldValueForbidden", field, "Forbidden", detail);
}

StatusCause duplicate(std::string_view field, std::string_view value) {
  return cause("FieldValueDuplicate", field, "Duplicate value: " + detail::quote(value), {});
}

StatusCause not_supported(std::string_view field, std::string_view value,
                          std::span<const std::string_view> supported) {
  std::string list;
  for (const auto one : supported)
    list += (list.empty() ? "supported values: " : ", ") + detail::quote(one);
  return cause("FieldValueNotSupported", field, "Unsupported value: " + detail::quote(value), list);
}

StatusCause too_long(std::string_view field, int max_bytes) {
  return cause("FieldValueTooLong", field, "Too long",
               fmt::format("may not be more than {} byte{}", max_bytes, max_bytes == 1 ? "" : "s"));
}

std::string to_string(std::span<const StatusCause> causes) {
  std::vector<std::string> lines;
  for (const auto& one : causes) {
    std::string line = fmt::format("{}: {}", one.field, one.message);
    if (std::find(lines.begin(), lines.end(), line) == lines.end())
      lines.push_back(std::move(line));
  }
  return lines.size() == 1 ? lines.front()
         : lines.empty()   ? ""
                           : fmt::format("[{}]", fmt::join(lines, ", "));
}

}  // namespace lookout::api::validation
