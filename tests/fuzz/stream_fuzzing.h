// List and watch bodies for fuzzers: the sizes of the pieces must not matter.
#pragma once

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "lookout/api/stream_decoder.h"
#include "tests/fuzz/fuzzing.h"

namespace lookout::fuzz {

/// A decoder's result for a body.
struct Decoded {
  std::vector<std::string> told;  // items or events, and errors, in order
  bool complete = false;
  bool would_lose = false;
  std::size_t lost = 0;
  std::string error;
  std::string list;  // the list's metadata

  bool operator==(const Decoded&) const = default;
};

/// Passes a Decoder its input with `feed(decoder)`. `check` receives every object.
template <class Decoder, class Feed, class Check>
Decoded decode(const api::StreamOptions& options, const Feed& feed, const Check& check) {
  constexpr bool kIsList = std::is_base_of_v<api::ListDecoder, Decoder>;
  Decoded out;
  const auto on_malformed = [&](const api::MalformedObject& malformed) {
    require(malformed.key.size() <= malformed.bytes);
    out.told.push_back(malformed.reason + malformed.key + std::to_string(malformed.bytes));
  };
  const auto on_object = [&](const auto& item) {
    if constexpr (kIsList) {
      check(item);
      out.told.push_back(item.to_json());
    } else {
      check(item.object);
      out.told.push_back(std::string(to_string(item.type)) + item.object.to_json());
    }
  };
  Decoder decoder(options, on_object, on_malformed);
  feed(decoder);
  out.complete = decoder.finish();
  out.error = decoder.error();
  out.would_lose = decoder.would_lose();
  out.lost = decoder.unknown_fields().count;
  require(out.complete == out.error.empty());
  require(!out.would_lose || !out.complete);
  if constexpr (kIsList) {
    out.list = std::string(decoder.api_version()) + '\n' + std::string(decoder.kind()) + '\n' +
               std::string(decoder.resource_version()) + '\n' +
               std::string(decoder.continue_token()) +
               std::to_string(decoder.remaining_item_count().value_or(-1));
  }
  return out;
}

/// Decodes the body whole and in pieces, and requires equal results. `check` receives the objects of the
/// whole one.
template <class Decoder, class Check>
Decoded decode_both_ways(const api::StreamOptions& options, std::string_view body,
                         const Check& check) {
  const Decoded whole = decode<Decoder>(
      options, [&](auto& decoder) { decoder.feed(body); }, check);
  const Decoded pieces = decode<Decoder>(
      options,
      [&](auto& decoder) {
        feed_in_pieces(body, [&](std::string_view piece) { decoder.feed(piece); });
      },
      [](const api::Object&) {});
  require(whole == pieces);
  return whole;
}
template <class Decoder>
Decoded decode_both_ways(const api::StreamOptions& options, std::string_view body) {
  return decode_both_ways<Decoder>(options, body, [](const api::Object&) {});
}

/// A watch body, under two limits and with two projections. `adjust` may change the options.
template <class Decoder, class Adjust>
void decode_watch(std::string_view body, const Adjust& adjust) {
  api::StreamOptions options;
  for (const std::size_t limit : {std::size_t{1} << 20, std::size_t{100}}) {
    for (const bool all : {true, false}) {
      options.max_object_bytes = limit;
      options.projection =
          all ? api::Projection() : api::Projection::keep({"metadata.labels", "spec.nodeName"});
      adjust(options);
      decode_both_ways<Decoder>(options, body);
    }
  }
}

}  // namespace lookout::fuzz
