// Arrays of strings.
#pragma once

#include <string>
#include <vector>

#include "lookout/api/value.h"

namespace lookout::api::detail {

/// The strings of an array; an element that is not a string becomes an empty one.
inline std::vector<std::string> texts_of(Value list) {
  std::vector<std::string> out;
  for (const Value text : list.elements()) out.emplace_back(text.as_string());
  return out;
}

}  // namespace lookout::api::detail
