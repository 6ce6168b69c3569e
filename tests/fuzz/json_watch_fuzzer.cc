// Watch bodies: neither the sizes of the pieces nor a projection may change the events.
#include "lookout/api/json.h"
#include "tests/fuzz/stream_fuzzing.h"

using namespace lookout;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  fuzz::decode_watch<api::JsonWatchDecoder>(fuzz::text_of(data, size), [](auto&) {});
  return 0;
}
