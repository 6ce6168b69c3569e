// Reading JSON without a document.
#pragma once

#include <rapidjson/memorystream.h>
#include <rapidjson/reader.h>

#include <string>
#include <string_view>

#include "lookout/base/json_strings.h"

namespace lookout::api::detail {

/// Calls the handler (RapidJSON's SAX) with what the JSON contains, numbers as text. Surrogates are
/// read as Go's decoder reads them. False if the JSON is malformed or the handler has ended it.
template <class Handler>
bool walk_json(std::string_view json, Handler& handler) {
  constexpr unsigned kFlags =
      rapidjson::kParseIterativeFlag | rapidjson::kParseNumbersAsStringsFlag;
  std::string room;
  const std::string_view text = repair_surrogates(json, room);
  rapidjson::MemoryStream stream(text.data(), text.size());
  rapidjson::Reader reader;
  return !reader.Parse<kFlags>(stream, handler).IsError();
}

}  // namespace lookout::api::detail
