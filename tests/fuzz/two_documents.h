// An input of two JSON documents, one per line.
#pragma once

#include <rapidjson/document.h>

#include <string_view>

#include "lookout/api/detail/json_values.h"
#include "tests/fuzz/fuzzing.h"

namespace lookout::fuzz {

struct TwoDocuments {
  rapidjson::Document first;
  rapidjson::Document second;

  /// True if the input is two valid documents.
  bool parse(std::string_view text) {
    constexpr std::size_t kLongest = 20000;
    const std::size_t middle = text.find('\n');
    if (middle == std::string_view::npos || text.size() > kLongest) return false;
    return api::detail::parse_json(text.substr(0, middle), first) &&
           api::detail::parse_json(text.substr(middle + 1), second);
  }
};

}  // namespace lookout::fuzz
