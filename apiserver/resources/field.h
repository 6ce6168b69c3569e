// Field: a part of an object that is validated.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "apiserver/resources/strategy.h"

namespace lookout::apiserver::resources {

inline constexpr const char* kImmutable = "field is immutable";

/// The error message for a text that is not a valid address; null for a valid one, which need not be
/// in its canonical form.
const char* fault_of_ip(std::string_view address);

/// The error message for a text that is not a valid address range (CIDR); null for a valid one.
const char* fault_of_cidr(std::string_view range);

/// A value, its path in error messages, and the list that receives the errors. The value may be
/// absent; null counts as absent. Words and order of errors are those of
/// k8s.io/apimachinery/pkg/util/validation/field. A Field owns neither the list nor the
/// names of members. It builds its path only for an error.
class Field {
 public:
  using Words = std::initializer_list<std::string_view>;

  Field(api::Value value, std::string path, Causes& causes)
      : value_(value.is_null() ? api::Value() : value), root_(std::move(path)), causes_(&causes) {}

  /// A member; the path of a root is empty.
  Field operator[](std::string_view name) const {
    return {*this, value_[name], {name.data(), narrow(name.size()), Step::kMember}};
  }
  template <std::same_as<std::string> Temporary>
  Field operator[](Temporary&& name) const = delete;
  /// The entry of a map.
  Field key(std::string_view name) const {
    return {*this, value_[name], {name.data(), narrow(name.size()), Step::kKey}};
  }
  /// The same value with another path.
  Field named(std::string path) const { return {value_, std::move(path), *causes_}; }

  /// Calls `visit(element)` for the elements of a list.
  template <class Visit>
  void each(Visit visit) const {
    std::uint32_t index = 0;
    for (const api::Value one : value_.elements())
      visit(Field(*this, one, {nullptr, index++, Step::kIndex}));
  }
  /// Calls `visit(name, entry)` for the entries of a map.
  template <class Visit>
  void each_entry(Visit visit) const {
    for (const auto& [name, one] : value_.members())
      visit(name, Field(*this, one, {name.data(), narrow(name.size()), Step::kKey}));
  }

  api::Value operator*() const { return value_; }
  std::string path() const;
  Causes& causes() const { return *causes_; }
  bool exists() const { return value_.exists(); }
  /// Absent, or an empty text, list or object.
  bool empty() const { return value_.is_string() ? text().empty() : value_.empty(); }
  std::string_view text() const { return value_.as_string(); }
  std::int64_t number() const { return value_.as_int(); }
  bool is_true() const { return value_.as_bool(); }
  /// Whether it equals another value; null counts as absent.
  bool is(api::Value other) const { return value_ == (other.is_null() ? api::Value() : other); }

  // Each adds one error for the value.
  void required(std::string_view why = "") const;
  void forbidden(std::string_view why) const;
  void duplicate() const;
  void not_found() const;
  void not_supported(Words words) const;
  void too_many(std::size_t most) const;
  /// The message of invalid() shows the value as JSON, null if it is absent. The other two show an
  /// absent value as "" or 0.
  void invalid(std::string_view why) const;
  void invalid_text(std::string_view why) const;
  void invalid_number(std::string_view why) const;
  /// The message shows `shown` instead of the value: Kubernetes' form, in Go's syntax.
  void invalid_as(std::string_view shown, std::string_view why) const;

  // Rules. They return whether the value is valid.

  bool check_present(std::string_view why = "") const;
  /// For an amount that may be absent.
  bool check_not_negative() const;
  bool check_positive(std::string_view why = "must be greater than 0") const {
    return check_range(1, INT64_MAX, why);
  }
  bool check_range(std::int64_t least, std::int64_t most, std::string_view why = "") const;
  bool check_port() const;
  /// One of the words. An absent value counts as "".
  bool check_word(Words words) const;
  bool check_word_if_present(Words words) const { return !exists() || check_word(words); }
  /// If the value is empty, the error is that it is required.
  bool check_required_word(Words words) const;
  /// One of the checks in api/validation.h.
  bool check_form(api::validation::Messages (*check)(std::string_view)) const;
  bool check_form_if_present(api::validation::Messages (*check)(std::string_view)) const {
    return text().empty() || check_form(check);
  }
  bool check_required_form(api::validation::Messages (*check)(std::string_view)) const {
    return check_present() && check_form(check);
  }
  /// An IP address, an address range.
  bool check_ip() const;
  bool check_cidr() const;
  /// A port's number, or the name of one.
  bool check_port_or_name() const;
  /// A number that is not negative, or a percentage.
  bool check_count_or_share() const;
  /// A percentage of at most 100.
  bool check_share() const;
  /// Not positive, or "0%".
  bool is_zero_share() const;
  /// A relative path that does not leave its directory.
  void check_descending_path() const;
  void check_no_backsteps() const;
  /// The labels of an object, or matchLabels.
  void check_labels() const;
  void check_annotations() const;
  bool check_label_selector() const;
  /// Checks the number of a requirement's values for its operator. False if the operator is invalid.
  bool check_requirement_values() const;
  /// Whether the selector matches these labels. An absent selector matches nothing; an invalid one
  /// (reported elsewhere) everything.
  bool selects(api::Value labels) const;
  /// Checks the labels and annotations of a template.
  void check_template_metadata() const;

 private:
  /// ".name", "[name]" or "[3]".
  struct Step {
    enum Kind : std::uint8_t { kMember, kKey, kIndex };
    const char* name;
    std::uint32_t size_or_index;
    Kind kind;
  };
  /// Longer paths are converted to a text.
  static constexpr std::size_t kMaxSteps = 16;

  Field(const Field& parent, api::Value value, Step step);
  static std::uint32_t narrow(std::size_t size) { return static_cast<std::uint32_t>(size); }

  api::Value value_;
  /// The path of the field at which the steps start.
  std::string root_;
  std::size_t depth_ = 0;
  std::array<Step, kMaxSteps> steps_;  // the first `depth_` are set
  Causes* causes_;
};

/// Whether the list has the text.
template <class List>
bool is_one_of(std::string_view text, const List& list) {
  return std::find(list.begin(), list.end(), text) != list.end();
}

/// The name of a port (IANA_SVC_NAME of RFC 6335).
api::validation::Messages check_port_name(std::string_view name);
/// The form of a label key, with upper-case letters anywhere.
api::validation::Messages check_annotation_key(std::string_view key);
/// metav1.Conditions.
void check_conditions(const Field& conditions);
/// example.com/name.
void check_domain_path(const Field& path);
/// The name of a CSI driver.
void check_driver_name(const Field& name);

/// For an object that may have only one of the members `kinds`: calls `check(kind, member)` for the
/// first; each other one is the error `why`. False if there is none.
template <class Kinds, class Check>
bool check_one_of(const Field& object, const Kinds& kinds, std::string_view why, Check check) {
  bool found = false;
  for (const auto& kind : kinds) {
    const Field member = object[kind.name];
    if (!member.exists()) continue;
    if (found) {
      member.forbidden(why);
    } else {
      check(kind, member);
    }
    found = true;
  }
  return found;
}

}  // namespace lookout::apiserver::resources
