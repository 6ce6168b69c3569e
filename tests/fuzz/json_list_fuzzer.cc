// List bodies: the sizes of the pieces must not matter.
#include "lookout/api/json.h"
#include "tests/fuzz/stream_fuzzing.h"

using namespace lookout;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view body = fuzz::text_of(data, size);
  api::StreamOptions options;
  options.api_version = "example.com/v1";
  options.kind = "Thing";
  for (const std::size_t limit : {std::size_t{1} << 20, std::size_t{100}}) {
    options.max_object_bytes = limit;
    fuzz::decode_both_ways<api::JsonListDecoder>(options, body);
  }
  return 0;
}
