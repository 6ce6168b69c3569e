// Watch bodies in protobuf: neither the split into pieces nor a projection may change the events.
#include "lookout/api/protobuf.h"
#include "tests/fuzz/stream_fuzzing.h"

using namespace lookout;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::decode_watch<api::ProtobufWatchDecoder>(
      fuzz::text_of(data, size),
      [](api::StreamOptions& options) { options.lossless = options.max_object_bytes == 100; });
  return 0;
}
