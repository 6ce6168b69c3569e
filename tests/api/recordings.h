// Recorded responses of a real API server, and functions that feed them to a decoder.
#pragma once

#include <rapidjson/document.h>

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "lookout/api/json.h"

namespace lookout::api::test {

/// The recorded lists, by the names of their files without ".json". Tables are not among them.
std::vector<std::string> recorded_lists();
/// The recorded watches, by the names of their files.
std::vector<std::string> recorded_watches();
/// The lists that were also recorded in protobuf.
std::vector<std::string> lists_in_both_encodings();
/// A file of the recordings: "list/v1_pods.pb".
std::string protobuf_recording(const std::string& file);
/// The text with characters replaced that are invalid in test names.
std::string test_name(std::string text);
std::string list_body(const std::string& name);
std::string watch_body(const std::string& name);

/// Fails the test if the text is not JSON.
rapidjson::Document parse_json(std::string_view text);
std::string to_json(const rapidjson::Value& value);
/// The items of a recorded list as single objects, each with its apiVersion and kind.
std::vector<std::string> recorded_items(const std::string& name);
/// The same of all lists.
std::vector<std::string> all_recorded_items();

/// Passes a body to a decoder in pieces; returns the decoder's last result.
using Feed = std::function<bool(std::string_view)>;
using Pieces = std::function<bool(std::string_view body, const Feed& feed)>;
Pieces in_one_piece();
Pieces byte_by_byte();
Pieces cut_at(std::size_t position);

/// A decoder's result for a body.
struct Decoded {
  std::vector<MalformedObject> malformed;
  bool complete = false;
  std::string error;
  UnknownFields unknown;
  bool would_lose = false;

  bool operator==(const Decoded& other) const;
};

struct DecodedList : Decoded {
  std::vector<Object> items;
  std::string api_version;
  std::string kind;
  std::string resource_version;
  std::string continue_token;
  std::optional<std::int64_t> remaining_item_count;

  bool operator==(const DecodedList& other) const;
};
DecodedList decode_list(std::string_view body, const StreamOptions& options = {},
                        const Pieces& pieces = in_one_piece());
DecodedList decode_protobuf_list(std::string_view body, const StreamOptions& options = {},
                                 const Pieces& pieces = in_one_piece());

struct DecodedWatch : Decoded {
  std::vector<WatchEvent> events;

  bool operator==(const DecodedWatch& other) const;
};
DecodedWatch decode_watch(std::string_view body, const StreamOptions& options = {},
                          const Pieces& pieces = in_one_piece());
DecodedWatch decode_protobuf_watch(std::string_view body, const StreamOptions& options = {},
                                   const Pieces& pieces = in_one_piece());

}  // namespace lookout::api::test
