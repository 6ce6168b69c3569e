// Objects and watch events from protobuf: an accepted object equals the object from its own JSON,
// and no projection makes a readable object unreadable.
#include <array>
#include <string>

#include "lookout/api/json.h"
#include "lookout/api/protobuf.h"
#include "tests/fuzz/fuzzing.h"

using namespace lookout;
using fuzz::require;

namespace {

void check(const api::Object& object) {
  api::JsonDecoder decoder;
  std::string text = object.to_json();
  require(decoder.decode(text) == object);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::array kProjections = {
      api::Projection::keep({"items.spec.containers.name", "metadata.labels", "spec", "data.a"}),
      api::Projection::drop({"metadata.managedFields", "items.metadata.managedFields", "data"}),
  };
  const std::string_view bytes = fuzz::text_of(data, size);
  api::ProtobufDecoder decoder;
  const api::Object object = decoder.decode(bytes);
  require(static_cast<bool>(object) == decoder.error().empty());
  if (object) {
    check(object);
    for (const auto& projection : kProjections) {
      api::ProtobufDecoder part_of(projection);
      const api::Object part = part_of.decode(bytes);
      require(static_cast<bool>(part));
      require(part.key() == object.key());
      require(part.gvk() == object.gvk());
      check(part);
    }
  }
  if (const auto event = decoder.decode_event(bytes)) check(event->object);
  return 0;
}
