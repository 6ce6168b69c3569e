// Fields that an object must have.
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

}  // namespace lookout::apiserver::resources
