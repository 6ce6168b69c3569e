#include "apiserver/resources/field.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <span>

#include "apiserver/resources/ip_address.h"
#include "apiserver/resources/names.h"
#include "lookout/api/detail/go_text.h"
#include "lookout/api/labels.h"
#include "lookout/base/ascii.h"
#include "lookout/k8s/meta/v1.h"

namespace lookout::apiserver::resources {
namespace {

std::span<const std::string_view> span_of(Field::Words words) {
  return {words.begin(), words.size()};
}

/// Parses a percentage: 25 for "25%".
std::optional<std::int64_t> share_of(std::string_view text) {
  const std::string_view digits = text.substr(0, text.size() - (text.ends_with('%') ? 1 : 0));
  if (!text.ends_with('%') || digits.empty() ||
      digits.find_first_not_of("0123456789") != std::string_view::npos)
    return std::nullopt;
  return api::detail::parse_int(digits);
}

/// A reason begins with a letter. Letters, digits, '_', ',' and ':' follow; the last character is not
/// ',' or ':'.
rules::Messages check_condition_reason(std::string_view reason) {
  const auto is_letter = [](char c) {
    const char lower = base::lower_case(c);
    return lower >= 'a' && lower <= 'z';
  };
  const auto is_part = [&](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || c == '_' || c == ',' || c == ':';
  };
  const bool is_valid = !reason.empty() && is_letter(reason.front()) &&
                        std::all_of(reason.begin(), reason.end(), is_part) &&
                        reason.back() != ',' && reason.back() != ':';
  if (is_valid) return {};
  return {
      "a condition reason must start with alphabetic character, optionally followed by a string of "
      "alphanumeric characters or '_,:', and must end with an alphanumeric character or '_' (e.g. "
      "'my_name',  or 'MY_NAME',  or 'MyName',  or 'ReasonA,ReasonB',  or 'ReasonA:ReasonB', regex "
      "used for validation is '[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?')"};
}

}  // namespace

Field::Field(const Field& parent, api::Value value, Step step)
    : value_(value.is_null() ? api::Value() : value), causes_(parent.causes_) {
  if (parent.depth_ == kMaxSteps) {
    root_ = parent.path();
  } else {
    root_ = parent.root_;
    depth_ = parent.depth_;
    std::copy_n(parent.steps_.begin(), depth_, steps_.begin());
  }
  steps_[depth_++] = step;
}

std::string Field::path() const {
  std::string out = root_;
  for (std::size_t i = 0; i < depth_; ++i) {
    const Step& step = steps_[i];
    if (step.kind == Step::kIndex) {
      out += fmt::format("[{}]", step.size_or_index);
      continue;
    }
    const std::string_view name(step.name, step.size_or_index);
    if (step.kind == Step::kKey) {
      out += fmt::format("[{}]", name);
    } else {
      if (!out.empty()) out += '.';
      out += name;
    }
  }
  return out;
}

void Field::required(std::string_view why) const {
  causes_->push_back(rules::required(path(), why));
}

void Field::forbidden(std::string_view why) const {
  causes_->push_back(rules::forbidden(path(), why));
}

void Field::duplicate() const {
  causes_->push_back(
      {"FieldValueDuplicate",
       fmt::format("Duplicate value: {}",
                   value_.is_string() || !exists() ? api::detail::quote(text()) : value_.to_json()),
       path()});
}

void Field::not_found() const {
  causes_->push_back(
      {"FieldValueNotFound", fmt::format("Not found: {}", api::detail::quote(text())), path()});
}

void Field::not_supported(Words words) const {
  causes_->push_back(rules::not_supported(path(), text(), span_of(words)));
}

void Field::too_many(std::size_t most) const {
  causes_->push_back({"FieldValueTooMany",
                      fmt::format("Too many: {}: must have at most {} items", value_.size(), most),
                      path()});
}

void Field::invalid(std::string_view why) const {
  if (value_.is_string()) return invalid_text(why);
  std::string message = "Invalid value: " + (exists() ? value_.to_json() : "null");
  if (!why.empty()) message.append(": ").append(why);
  causes_->push_back({"FieldValueInvalid", std::move(message), path()});
}

void Field::invalid_as(std::string_view shown, std::string_view why) const {
  causes_->push_back(
      {"FieldValueInvalid", fmt::format("Invalid value: {}: {}", shown, why), path()});
}

void Field::invalid_text(std::string_view why) const {
  causes_->push_back(rules::invalid(path(), text(), why));
}

void Field::invalid_number(std::string_view why) const {
  causes_->push_back(rules::invalid(path(), number(), why));
}

bool Field::check_present(std::string_view why) const {
  if (!empty() || value_.is_number() || value_.is_bool()) return true;
  required(why);
  return false;
}

bool Field::check_not_negative() const {
  return check_range(0, INT64_MAX, "must be greater than or equal to 0");
}

bool Field::check_range(std::int64_t least, std::int64_t most, std::string_view why) const {
  if (!exists() || (number() >= least && number() <= most)) return true;
  invalid_number(why.empty() ? fmt::format("must be between {} and {}, inclusive", least, most)
                             : std::string(why));
  return false;
}

bool Field::check_port() const {
  constexpr std::int64_t kMost = 65535;
  if (number() >= 1 && number() <= kMost) return true;
  invalid_number("must be between 1 and 65535, inclusive");
  return false;
}

bool Field::check_word(Words words) const {
  if (std::find(words.begin(), words.end(), text()) != words.end()) return true;
  not_supported(words);
  return false;
}

bool Field::check_required_word(Words words) const { return check_present() && check_word(words); }

bool Field::check_form(rules::Messages (*check)(std::string_view)) const {
  const rules::Messages messages = check(text());
  for (const std::string& message : messages) invalid_text(message);
  return messages.empty();
}

const char* fault_of_ip(std::string_view text) {
  const auto address = IpAddress::parse(text);
  if (address) return address->is_mapped() ? "must not be an IPv4-mapped IPv6 address" : nullptr;
  return IpAddress::parse(without_leading_zeros(text))
             ? "must not have leading 0s"
             : "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
}

bool Field::check_ip() const {
  const char* const fault = fault_of_ip(text());
  if (fault != nullptr) invalid_text(fault);
  return fault == nullptr;
}

const char* fault_of_cidr(std::string_view text) {
  const std::string plain = without_leading_zeros(text);
  const auto range = IpRange::parse(plain);
  if (!range) return "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
  if (plain != text && range->address.family == 4)
    return "must not have leading 0s in IP or prefix length";
  if (range->address.is_mapped()) return "must not have an IPv4-mapped IPv6 address";
  if (range->address != range->address.masked(range->length))
    return "must not have bits set beyond the prefix length";
  return nullptr;
}

bool Field::check_cidr() const {
  const char* const fault = fault_of_cidr(text());
  if (fault != nullptr) invalid_text(fault);
  return fault == nullptr;
}

bool Field::check_port_or_name() const {
  return value_.is_string() ? check_form(check_port_name) : check_port();
}

bool Field::check_count_or_share() const {
  if (!value_.is_string()) return check_not_negative();
  if (share_of(text())) return true;
  invalid_text(
      "a valid percent string must be a numeric string followed by an ending '%' (e.g. '1%',  or "
      "'93%', regex used for validation is '[0-9]+%')");
  return false;
}

bool Field::check_share() const {
  constexpr std::int64_t kWhole = 100;
  if (!value_.is_string() || share_of(text()).value_or(0) <= kWhole) return true;
  invalid_text("must not be greater than 100%");
  return false;
}

bool Field::is_zero_share() const {
  return value_.is_string() ? share_of(text()).value_or(0) == 0 : number() == 0;
}

void Field::check_no_backsteps() const {
  const std::string padded = fmt::format("/{}/", text());
  if (padded.find("/../") != std::string::npos) invalid_text("must not contain '..'");
}

void Field::check_descending_path() const {
  if (text().starts_with('/')) invalid_text("must be a relative path");
  check_no_backsteps();
}

void Field::check_labels() const {
  for (const auto& [name, value] : value_.members()) {
    for (const auto& message : rules::check_qualified_name(name))
      causes_->push_back(rules::invalid(path(), name, message));
    for (const auto& message : rules::check_label_value(value.as_string()))
      causes_->push_back(rules::invalid(path(), value.as_string(), message));
  }
}

void Field::check_annotations() const {
  constexpr std::size_t kMost = 256u << 10;
  std::size_t size = 0;
  for (const auto& [name, value] : value_.members()) {
    for (const auto& message : check_annotation_key(name))
      causes_->push_back(rules::invalid(path(), name, message));
    size += name.size() + value.as_string().size();
  }
  if (size > kMost) causes_->push_back(rules::too_long(path(), static_cast<int>(kMost)));
}

bool Field::check_label_selector() const {
  const std::size_t before = causes_->size();
  (*this)["matchLabels"].check_labels();
  (*this)["matchExpressions"].each([](const Field& expression) {
    if (!expression.check_requirement_values())
      expression["operator"].invalid_text("not a valid selector operator");
    expression["key"].check_form(rules::check_qualified_name);
    expression["values"].each(
        [](const Field& value) { value.check_form(rules::check_label_value); });
  });
  return causes_->size() == before;
}

bool Field::check_requirement_values() const {
  const Field values = (*this)["values"];
  const std::string_view relation = (*this)["operator"].text();
  if (relation == "In" || relation == "NotIn") {
    values.check_present("must be specified when `operator` is 'In' or 'NotIn'");
    return true;
  }
  if (relation != "Exists" && relation != "DoesNotExist") return false;
  if (!values.empty())
    values.forbidden("may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
  return true;
}

bool Field::selects(Value labels) const {
  if (!value_.is_object()) return false;
  try {
    return api::labels::from(k8s::meta::v1::LabelSelector(value_)).matches(labels);
  } catch (const api::SelectorError&) {
    return true;
  }
}

void Field::check_template_metadata() const {
  (*this)["annotations"].check_annotations();
  (*this)["labels"].check_labels();
}

rules::Messages check_port_name(std::string_view name) {
  constexpr std::size_t kMost = 15;
  rules::Messages out;
  const auto is_letter = [](char c) { return c >= 'a' && c <= 'z'; };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  if (name.size() > kMost) out.emplace_back("must be no more than 15 characters");
  if (name.empty() || !std::all_of(name.begin(), name.end(),
                                   [&](char c) { return is_letter(c) || is_digit(c) || c == '-'; }))
    out.emplace_back("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
  if (std::none_of(name.begin(), name.end(), is_letter))
    out.emplace_back("must contain at least one letter (a-z)");
  if (name.find("--") != std::string_view::npos)
    out.emplace_back("must not contain consecutive hyphens");
  if (!name.empty() && (name.front() == '-' || name.back() == '-'))
    out.emplace_back("must not begin or end with a hyphen");
  return out;
}

rules::Messages check_annotation_key(std::string_view key) {
  return rules::check_qualified_name(base::lower_case(key));
}

void check_conditions(const Field& conditions) {
  constexpr std::size_t kLongestReason = 1024;
  constexpr std::size_t kLongestMessage = 32 * 1024;
  std::set<std::string_view> types;
  conditions.each([&](const Field& condition) {
    const Field type = condition["type"];
    if (!types.insert(type.text()).second) type.duplicate();
    type.check_form(rules::check_qualified_name);
    condition["status"].check_word({"False", "True", "Unknown"});
    condition["observedGeneration"].check_range(0, INT64_MAX,
                                                "must be greater than or equal to zero");
    condition["lastTransitionTime"].check_present();
    const Field reason = condition["reason"];
    if (reason.check_present()) {
      reason.check_form(check_condition_reason);
      if (reason.text().size() > kLongestReason)
        reason.causes().push_back(rules::too_long(reason.path(), kLongestReason));
    }
    const Field message = condition["message"];
    if (message.text().size() > kLongestMessage)
      message.causes().push_back(rules::too_long(message.path(), kLongestMessage));
  });
}

void check_domain_path(const Field& path) {
  if (!path.check_present()) return;
  const std::string_view text = path.text();
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos || slash == 0 || slash + 1 == text.size())
    return path.invalid_text("must be a domain-prefixed path (such as \"acme.io/foo\")");
  const std::string_view host = text.substr(0, slash);
  const std::string_view rest = text.substr(slash + 1);
  for (const auto& message : rules::check_dns1123_subdomain(host))
    path.causes().push_back(rules::invalid(path.path(), host, message));
  constexpr std::string_view kOthers = "/-._~%!$&'()*+,;=:";
  if (std::all_of(rest.begin(), rest.end(), [&](char c) {
        return base::is_alnum(c) || kOthers.find(c) != std::string_view::npos;
      }))
    return;
  path.causes().push_back(rules::invalid(
      path.path(), rest,
      "Invalid path (regex used for validation is '[A-Za-z0-9/\\-._~%!$&'()*+,;=:]+')"));
}

void check_driver_name(const Field& name) {
  constexpr int kLongest = 63;
  if (!name.check_present()) return;
  if (name.text().size() > kLongest)
    name.causes().push_back(rules::too_long(name.path(), kLongest));
  for (const auto& message : rules::check_dns1123_subdomain(base::lower_case(name.text())))
    name.invalid_text(message);
}

}  // namespace lookout::apiserver::resources
