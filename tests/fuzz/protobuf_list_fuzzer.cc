// List bodies in protobuf: the pieces in which they come must not matter, nothing is lost without
// being counted, and what is decoded is encoded again.
#include <string>
#include <utility>
#include <vector>

#include "lookout/api/json.h"
#include "lookout/api/protobuf.h"
#include "tests/fuzz/fuzzing.h"

using namespace lookout;
using fuzz::require;

namespace {

struct Result {
  std::vector<std::string> told;  // items and complaints, in order
  bool complete = false;
  bool would_lose = false;
  std::size_t lost = 0;
  std::string error;
  std::string list;

  bool operator==(const Result&) const = default;
};

void check(const api::Object& object) {
  std::string text = object.to_json();
  require(api::JsonDecoder().decode(text) == object);
  // What we have decoded, and so have every field of, can be encoded; and means the same then.
  std::string bytes;
  api::ProtobufEncoder encoder;
  require(encoder.encode(object, bytes));
  api::ProtobufDecoder decoder;
  const api::Object first = decoder.decode(bytes);
  require(static_cast<bool>(first));
  require(decoder.unknown_fields().count == 0);
  // (Not the same object: an empty time, say, may have come as null.) From there on nothing
  // changes.
  std::string again;
  require(encoder.encode(first, again));
  require(decoder.decode(again) == first);
}

template <class Feeder>
Result decode(const api::StreamOptions& options, bool deep, Feeder feeder) {
  Result out;
  api::ProtobufListDecoder decoder(
      options,
      [&](const api::Object& object) {
        if (deep) check(object);
        out.told.push_back(object.to_json());
      },
      [&](const api::MalformedObject& malformed) {
        require(malformed.excerpt.size() <= malformed.bytes);
        out.told.push_back(malformed.reason + malformed.excerpt + std::to_string(malformed.bytes));
      });
  feeder(decoder);
  out.complete = decoder.finish();
  out.error = decoder.error();
  out.would_lose = decoder.would_lose();
  out.lost = decoder.unknown_fields().count;
  require(out.complete == out.error.empty());
  require(!out.would_lose || !out.complete);
  out.list = std::string(decoder.api_version()) + '\n' + std::string(decoder.kind()) + '\n' +
             std::string(decoder.resource_version()) + '\n' +
             std::string(decoder.continue_token()) +
             std::to_string(decoder.remaining_item_count().value_or(-1));
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body = fuzz::text_of(data, size);
  api::StreamOptions options;
  for (const std::size_t limit : {std::size_t{1} << 20, std::size_t{100}}) {
    for (const bool lossless : {false, true}) {
      options.max_object_bytes = limit;
      options.lossless = lossless;
      const bool deep = limit > 100 && !lossless;
      const Result whole = decode(options, deep, [&](auto& decoder) { decoder.feed(body); });
      const Result pieces = decode(options, false, [&](auto& decoder) {
        fuzz::feed_in_pieces(body, [&](std::string_view piece) { decoder.feed(piece); });
      });
      require(whole == pieces);
      require(!lossless || !whole.complete || whole.lost == 0);
    }
  }
  return 0;
}
