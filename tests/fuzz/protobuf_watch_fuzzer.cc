// Watch bodies in protobuf: the pieces in which they come must not matter, nor a projection to what
// happened.
#include <string>
#include <utility>
#include <vector>

#include "lookout/api/protobuf.h"
#include "tests/fuzz/fuzzing.h"

using namespace lookout;
using fuzz::require;

namespace {

struct Result {
  std::vector<std::string> told;  // events and complaints, in order
  bool complete = false;
  bool would_lose = false;
  std::string error;

  bool operator==(const Result&) const = default;
};

template <class Feeder>
Result decode(const api::StreamOptions& options, Feeder feeder) {
  Result out;
  api::ProtobufWatchDecoder decoder(
      options,
      [&](const api::WatchEvent& event) {
        out.told.push_back(std::string(to_string(event.type)) + event.object.to_json());
      },
      [&](const api::MalformedObject& malformed) {
        require(malformed.excerpt.size() <= malformed.bytes);
        out.told.push_back(malformed.reason + malformed.excerpt + std::to_string(malformed.bytes));
      });
  feeder(decoder);
  out.complete = decoder.finish();
  out.error = decoder.error();
  out.would_lose = decoder.would_lose();
  require(out.complete == out.error.empty());
  return out;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body = fuzz::text_of(data, size);
  api::StreamOptions options;
  for (const std::size_t limit : {std::size_t{1} << 20, std::size_t{100}}) {
    for (const bool all : {true, false}) {
      options.max_object_bytes = limit;
      options.lossless = limit == 100;
      options.projection =
          all ? api::Projection() : api::Projection::keep({"metadata.labels", "spec.nodeName"});
      const Result whole = decode(options, [&](auto& decoder) { decoder.feed(body); });
      const Result pieces = decode(options, [&](auto& decoder) {
        fuzz::feed_in_pieces(body, [&](std::string_view piece) { decoder.feed(piece); });
      });
      require(whole == pieces);
    }
  }
  return 0;
}
