// The cells of one row.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/api/object.h"
#include "lookout/api/time.h"

namespace lookout::apiserver::tables {

/// Collects the cells of a row as JSON.
class Cells {
 public:
  /// Ages are relative to `now`.
  explicit Cells(api::Time now) : now_(now) {}

  void text(std::string_view value);
  void number(std::int64_t value);
  void boolean(bool value);
  void null();
  /// The age; "<unknown>" without a timestamp.
  void age(api::Value timestamp) { text(age_text(timestamp)); }
  /// Any JSON value, unchanged.
  void any(api::Value value);

  std::string age_text(api::Value timestamp) const;
  api::Time now() const { return now_; }

  /// The conditions of the row, as JSON; empty if there are none.
  void set_conditions(std::string json) { conditions_ = std::move(json); }
  const std::string& conditions() const { return conditions_; }

  std::size_t size() const { return size_; }
  /// Separated by commas.
  const std::string& json() const { return json_; }

 private:
  void next();

  const api::Time now_;
  std::size_t size_ = 0;
  std::string json_;
  std::string conditions_;
};

/// The text of a field, or a placeholder.
std::string_view or_else(api::Value value, std::string_view otherwise);

/// "a=1,b=2", sorted; "<none>" for no labels (labels.FormatLabels).
std::string format_labels(api::Value labels);
/// The same of a metav1.LabelSelector (metav1.FormatLabelSelector).
std::string format_selector(api::Value selector);
/// The selector as text; empty for one without requirements.
std::string selector_text(api::Value selector);

std::string join(const std::vector<std::string>& parts, std::string_view separator);
std::string join(api::Value texts, std::string_view separator);

/// Names and images of containers.
std::string container_names(api::Value containers);
std::string container_images(api::Value containers);

/// A number or a percentage (IntOrString).
std::string int_or_text(api::Value value);
/// An amount in its canonical form; "0" if there is none.
std::string quantity_text(api::Value value);
/// "RWO,ROX".
std::string access_modes(api::Value modes);

/// The first condition with this type; absent if there is none.
api::Value find_condition(api::Value conditions, std::string_view type);
bool is_condition_true(api::Value conditions, std::string_view type);

/// Keeps the first `most` entries and counts the rest: "a,b,c + 2 more...".
class Shortened {
 public:
  explicit Shortened(std::size_t most, std::string_view separator = ",")
      : most_(most), separator_(separator) {}
  void add(std::string entry);
  std::string text(std::string_view if_empty) const;

 private:
  const std::size_t most_;
  const std::string_view separator_;
  std::size_t count_ = 0;
  std::vector<std::string> entries_;
};

}  // namespace lookout::apiserver::tables
