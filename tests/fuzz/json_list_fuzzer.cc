// List bodies: the pieces in which they come must not matter.
#include <string>
#include <utility>
#include <vector>

#include "lookout/api/json.h"
#include "tests/fuzz/fuzzing.h"

using namespace lookout;
using fuzz::require;

namespace {

struct Result {
  std::vector<std::string> told;  // items and complaints, in order
  bool complete = false;
  std::string error;
  std::string list;

  bool operator==(const Result&) const = default;
};

template <class Feeder>
Result decode(const api::StreamOptions& options, Feeder feeder) {
  Result out;
  api::JsonListDecoder decoder(
      options, [&](const api::Object& object) { out.told.push_back(object.to_json()); },
      [&](const api::MalformedObject& malformed) {
        require(malformed.excerpt.size() <= malformed.bytes);
        out.told.push_back(malformed.reason + malformed.excerpt + std::to_string(malformed.bytes));
      });
  feeder(decoder);
  out.complete = decoder.finish();
  out.error = decoder.error();
  require(out.complete == out.error.empty());
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
  options.api_version = "example.com/v1";
  options.kind = "Thing";
  for (const std::size_t limit : {std::size_t{1} << 20, std::size_t{100}}) {
    options.max_object_bytes = limit;
    const Result whole = decode(options, [&](auto& decoder) { decoder.feed(body); });
    const Result pieces = decode(options, [&](auto& decoder) {
      fuzz::feed_in_pieces(body, [&](std::string_view piece) { decoder.feed(piece); });
    });
    require(whole == pieces);
  }
  return 0;
}
