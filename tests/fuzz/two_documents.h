// An input of two JSON documents, a line each.
#pragma once

#include <rapidjson/document.h>

#include <string_view>

#include "lookout/api/detail/json_values.h"
#include "tests/fuzz/fuzzing.h"

namespace lookout::fuzz {

struct TwoDocuments {
  rapidjson::Document first;
  rapidjson::Document second;

  /// Whether they are two.
  bool parse(std::string_view text) {
    constexpr std::size_t kLongest = 20000;
    const std::size_t middle = text.find('\n');
    if (middle == std::string_view::npos || text.size() > kLongest) return false;
    first.Parse<api::detail::kParseExactly>(text.data(), middle);
    second.Parse<api::detail::kParseExactly>(text.data() + middle + 1, text.size() - middle - 1);
    return !first.HasParseError() && !second.HasParseError();
  }
};

}  // namespace lookout::fuzz
