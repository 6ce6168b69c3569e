// Rules for fields of many kinds.
#pragma once

#include <string_view>

#include "apiserver/resources/strategy.h"

namespace lookout::apiserver::resources {

/// Adds a cause if `value` is missing or empty.
inline void require(api::Value value, std::string_view field, Causes& causes,
                    std::string_view why = "") {
  const bool empty = value.is_string() ? value.as_string().empty() : value.empty();
  if (!value.exists() || empty) causes.push_back(api::validation::required(field, why));
}

/// Adds a cause if `value` is a negative number.
inline void require_not_negative(api::Value value, std::string_view field, Causes& causes) {
  if (const auto number = value.to_int(); number && *number < 0) {
    causes.push_back(
        api::validation::invalid(field, *number, "must be greater than or equal to 0"));
  }
}

}  // namespace lookout::apiserver::resources
