// Label selectors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "lookout/api/error.h"
#include "lookout/api/object.h"
#include "lookout/base/attributes.h"

namespace lookout::k8s::meta::v1 {
class LabelSelector;
}

namespace lookout::api {

/// The error for a selector that Kubernetes would refuse. what() quotes the selector and gives the
/// position of the error.
class SelectorError : public Error {
 public:
  /// `selector` is empty if there is no text to quote: the selector was built from parts.
  SelectorError(std::string reason, std::string_view selector, std::size_t position);

  /// The reason in the API server's own words ("found ',', expected: identifier ...").
  const std::string& reason() const LOOKOUT_LIFETIME_BOUND { return reason_; }
  /// The position in the selector: a byte offset from 0.
  std::size_t position() const { return position_; }

 private:
  std::string reason_;
  std::size_t position_;
};

}  // namespace lookout::api

/// Label selectors with the syntax and the semantics of k8s.io/apimachinery/pkg/labels.
namespace lookout::api::labels {

enum class Operator {
  kEquals,
  kDoubleEquals,
  kNotEquals,
  kIn,
  kNotIn,
  kExists,
  kDoesNotExist,
  kGreaterThan,
  kLessThan
};

/// One condition on one label. Immutable.
class Requirement {
 public:
  /// Throws SelectorError if Kubernetes would refuse the key, a value or the number of values.
  Requirement(std::string key, Operator op, std::vector<std::string> values);

  const std::string& key() const LOOKOUT_LIFETIME_BOUND { return key_; }
  Operator op() const { return op_; }
  /// Sorted, without duplicates.
  const std::vector<std::string>& values() const LOOKOUT_LIFETIME_BOUND { return values_; }

  /// Tests metadata.labels of an object, which may be absent. Allocates nothing. As in Kubernetes,
  /// an absent label satisfies kNotEquals, kNotIn and kDoesNotExist; kGreaterThan and kLessThan
  /// compare integers, and a label that is not an integer never satisfies them.
  bool matches(Value labels) const;
  std::string to_string() const;

 private:
  std::string key_;
  Operator op_;
  std::vector<std::string> values_;
  // Key and values in their encoded form, so that matching compares bytes.
  std::string encoded_key_;
  std::vector<std::string> encoded_values_;
  std::int64_t number_ = 0;  // for kGreaterThan and kLessThan
};

/// A conjunction of requirements. The default-constructed one matches everything. Immutable; safe
/// to use from many threads.
class Selector {
 public:
  Selector() = default;
  explicit Selector(std::vector<Requirement> requirements);

  /// Allocates nothing.
  bool matches(Value labels) const;
  bool matches(const Object& object) const { return matches(object.labels()); }

  /// True if the selector has no requirements and so matches everything.
  bool empty() const { return requirements_.empty() && !nothing_; }
  const std::vector<Requirement>& requirements() const LOOKOUT_LIFETIME_BOUND {
    return requirements_;
  }

  /// The canonical text (requirements sorted by key, as Go prints them); parse() reads it back.
  std::string to_string() const;
  /// An implicit conversion for options: `pods.list({.label_selector = selector})`.
  operator std::string() const { return to_string(); }  // NOLINT(google-explicit-constructor)

 private:
  friend Selector nothing();
  std::vector<Requirement> requirements_;
  bool nothing_ = false;
};

/// Parses "app=web", "app in (web,api), !canary", "version>2" and everything else that
/// k8s.io/apimachinery/pkg/labels accepts. Throws SelectorError.
Selector parse(std::string_view text);

/// A selector that matches no object.
Selector nothing();

/// A selector that requires all of these labels (client-go's ValidatedSelectorFromSet). Throws
/// SelectorError.
Selector from_set(std::initializer_list<std::pair<std::string_view, std::string_view>> labels);
/// The same for a std::map, or for a map of an object: `from_set(service.spec().selector())`.
template <class Map>
Selector from_set(const Map& labels) {
  std::vector<Requirement> requirements;
  for (const auto& [key, value] : labels)
    requirements.emplace_back(std::string(key), Operator::kEquals, std::vector{std::string(value)});
  return Selector(std::move(requirements));
}

/// Converts a metav1.LabelSelector (matchLabels and matchExpressions) as client-go's
/// LabelSelectorAsSelector does: an absent one matches nothing, an empty one everything. Throws
/// SelectorError.
Selector from(const k8s::meta::v1::LabelSelector& selector);

}  // namespace lookout::api::labels
