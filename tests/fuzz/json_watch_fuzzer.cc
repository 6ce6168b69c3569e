// Watch bodies: the pieces in which they come must not matter, nor a projection to what happened.
#include "lookout/api/json.h"
#include "tests/fuzz/stream_fuzzing.h"

using namespace lookout;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::decode_watch<api::JsonWatchDecoder>(fuzz::text_of(data, size), [](auto&) {});
  return 0;
}
