// List bodies in protobuf: the split into pieces must make no difference, every lost field is
// counted, and decoded objects can be encoded.
#include <string>

#include "lookout/api/json.h"
#include "lookout/api/protobuf.h"
#include "tests/fuzz/stream_fuzzing.h"

using namespace lookout;
using fuzz::require;

namespace {

void check(const api::Object& object) {
  std::string text = object.to_json();
  require(api::JsonDecoder().decode(text) == object);
  // An object without lost fields must be encodable, with the same meaning.
  std::string bytes;
  api::ProtobufEncoder encoder;
  require(encoder.encode(object, bytes));
  api::ProtobufDecoder decoder;
  const api::Object first = decoder.decode(bytes);
  require(static_cast<bool>(first));
  require(decoder.unknown_fields().count == 0);
  // (Not an equal object: an empty time, for example, may have been null.) Further round trips
  // change nothing.
  std::string again;
  require(encoder.encode(first, again));
  require(decoder.decode(again) == first);
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
      const auto whole =
          fuzz::decode_both_ways<api::ProtobufListDecoder>(options, body, [&](const auto& object) {
            if (deep) check(object);
          });
      require(!lossless || !whole.complete || whole.lost == 0);
    }
  }
  return 0;
}
