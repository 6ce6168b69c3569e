// Single objects from JSON: accepted objects round-trip to the same bytes by every way, every
// member is found by its name, and no projection makes a readable object unreadable.
#include <rapidjson/document.h>

#include <array>
#include <string>

#include "lookout/api/detail/encoding.h"
#include "lookout/api/json.h"
#include "tests/fuzz/fuzzing.h"

using namespace lookout;
using fuzz::require;

namespace {

api::Object decode(const api::Projection& projection, std::string_view text) {
  api::JsonDecoder decoder(projection);
  std::string copy(text);
  api::Object object = decoder.decode(copy);
  require(static_cast<bool>(object) == decoder.error().empty());
  return object;
}

/// Whether a RapidJSON document can hold all numbers below `value`.
bool check(api::Value value) {
  bool fits = value.data() == nullptr || *value.data() != api::detail::kTagRawNumber;
  for (const auto& [name, member] : value.members()) {
    require(value[name] == member);
    fits &= check(member);
  }
  std::size_t i = 0;
  for (const api::Value element : value.elements()) {
    if (i < 3) require(value[i] == element);
    ++i;
    fits &= check(element);
  }
  return fits;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const std::array kProjections = {
      api::Projection::keep({"spec.containers.name", "metadata.labels", "status"}),
      api::Projection::keep({"a"}),
      api::Projection::drop({"metadata.managedFields", "spec.containers.env", "b"}),
  };
  const std::string_view text = fuzz::text_of(data, size);
  const api::Object object = decode({}, text);
  for (const auto& projection : kProjections) {
    const api::Object part = decode(projection, text);
    // Skipped parts are not validated, so a projection may accept input that is otherwise invalid.
    require(!object || part);
    if (object) {
      require(part.key() == object.key());
      require(part.uid() == object.uid());
      require(part.gvk() == object.gvk());
      require(part.resource_version() == object.resource_version());
    }
    if (part) require(decode({}, part.to_json()) == part);
  }
  if (object) {
    const bool fits = check(object.body());
    require(decode({}, object.to_json()) == object);
    require(decode({}, object.to_pretty_json()) == object);
    const api::Object again = api::Object::from(object.to_document());
    require(!fits || again == object);
    require(object.key_hash() == api::key_hash(object.ns(), object.name()));
  }

  // Common input goes through another parser than input with fractional numbers; both must produce
  // the same result.
  const auto beside = [&](std::string_view number) {
    return decode({},
                  std::string(R"({"z":)").append(number) + R"(,"a":)" + std::string(text) + "}");
  };
  // (RapidJSON 1.1 accepts control characters from 0x1A on in strings or not, depending on their
  // address.)
  if (text.find_first_of("\x1a\x1b\x1c\x1d\x1e\x1f") == std::string_view::npos) {
    const api::Object usual = beside("1");
    const api::Object unusual = beside("1.5");
    require(static_cast<bool>(usual) == static_cast<bool>(unusual));
    require(!usual || usual["a"] == unusual["a"]);
  }

  // For this text, and for one that differs at one position, a decoder that has seen the text must
  // give the same results as a new one.
  api::JsonDecoder old;
  const auto again = [&](const std::string& once_more) {
    std::string for_old = once_more;
    std::string for_fresh = once_more;
    api::JsonDecoder fresh;
    const api::Object seen = old.decode(for_old);
    require(seen == fresh.decode(for_fresh));
    require(seen || old.error() == fresh.error());
  };
  const std::string nested = R"({"a":[)" + std::string(text) + "]}";
  for (int i = 0; i < 5; ++i) again(nested);
  if (!text.empty()) {
    auto random = fuzz::random_for(text);
    for (int i = 0; i < 3; ++i) {
      std::string changed = nested;
      changed[6 + random() % text.size()] = "\"{}[]:,0a\\ "[random() % 11];
      again(changed);
    }
    again(nested);
  }

  api::JsonDecoder decoder;
  std::string copy(text);
  const auto event = decoder.decode_event(copy);
  if (event) require(decode({}, event->object.to_json()) == event->object);
  return 0;
}
