#include "apiserver/tables/cells.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "apiserver/endpoints/output.h"
#include "lookout/api/detail/json_writer.h"
#include "lookout/api/detail/texts.h"
#include "lookout/api/labels.h"
#include "lookout/api/quantity.h"
#include "lookout/k8s/meta/v1.h"

namespace lookout::apiserver::tables {

using api::Value;

void Cells::next() {
  if (size_++ > 0) json_ += ',';
}

void Cells::text(std::string_view value) {
  next();
  endpoints::append_json_string(value, json_);
}

void Cells::number(std::int64_t value) {
  next();
  json_ += std::to_string(value);
}

void Cells::boolean(bool value) {
  next();
  json_ += value ? "true" : "false";
}

void Cells::null() {
  next();
  json_ += "null";
}

void Cells::any(Value value) {
  next();
  api::detail::write_json(value, json_);
}

std::string Cells::age_text(Value timestamp) const {
  const auto time = api::parse_time(timestamp.as_string());
  if (!time) return "<unknown>";
  return api::format_age(std::chrono::duration_cast<std::chrono::seconds>(now_ - *time));
}

std::string_view or_else(Value value, std::string_view otherwise) {
  const std::string_view text = value.as_string();
  return text.empty() ? otherwise : text;
}

std::string join(const std::vector<std::string>& parts, std::string_view separator) {
  return fmt::format("{}", fmt::join(parts, separator));
}

std::string join(Value texts, std::string_view separator) {
  return join(api::detail::texts_of(texts), separator);
}

std::string format_labels(Value labels) {
  std::vector<std::string> parts;
  for (const auto& [key, value] : labels.members())
    parts.push_back(fmt::format("{}={}", key, value.as_string()));
  std::sort(parts.begin(), parts.end());
  return parts.empty() ? "<none>" : join(parts, ",");
}

std::string selector_text(Value selector) {
  if (!selector.is_object()) return "";
  try {
    return api::labels::from(k8s::meta::v1::LabelSelector(selector)).to_string();
  } catch (const api::SelectorError&) {
    return "<invalid>";
  }
}

std::string format_selector(Value selector) {
  const std::string text = selector_text(selector);
  if (text == "<invalid>") return "<error>";
  return text.empty() ? "<none>" : text;
}

std::string container_names(Value containers) {
  std::vector<std::string> names;
  for (const Value one : containers.elements()) names.emplace_back(one["name"].as_string());
  return join(names, ",");
}

std::string container_images(Value containers) {
  std::vector<std::string> images;
  for (const Value one : containers.elements()) images.emplace_back(one["image"].as_string());
  return join(images, ",");
}

std::string int_or_text(Value value) {
  return value.is_string() ? std::string(value.as_string()) : std::to_string(value.as_int());
}

std::string quantity_text(Value value) {
  if (value.is_number()) return value.to_json();
  const auto quantity = api::Quantity::parse(value.as_string());
  return quantity ? quantity->to_string() : "0";
}

std::string access_modes(Value modes) {
  struct Mode {
    std::string_view name;
    const char* brief;
  };
  constexpr std::array<Mode, 4> kModes = {{{"ReadWriteOnce", "RWO"},
                                           {"ReadOnlyMany", "ROX"},
                                           {"ReadWriteMany", "RWX"},
                                           {"ReadWriteOncePod", "RWOP"}}};
  std::vector<std::string> out;
  for (const Mode& mode : kModes) {
    for (const Value one : modes.elements()) {
      if (one.as_string() != mode.name) continue;
      out.emplace_back(mode.brief);
      break;
    }
  }
  return join(out, ",");
}

Value find_condition(Value conditions, std::string_view type) {
  for (const Value condition : conditions.elements()) {
    if (condition["type"].as_string() == type) return condition;
  }
  return {};
}

bool is_condition_true(Value conditions, std::string_view type) {
  return find_condition(conditions, type)["status"].as_string() == "True";
}

void Shortened::add(std::string entry) {
  if (count_++ < most_) entries_.push_back(std::move(entry));
}

std::string Shortened::text(std::string_view if_empty) const {
  const std::string shown = join(entries_, separator_);
  if (count_ > most_) return fmt::format("{} + {} more...", shown, count_ - most_);
  return shown.empty() ? std::string(if_empty) : shown;
}

}  // namespace lookout::apiserver::tables
