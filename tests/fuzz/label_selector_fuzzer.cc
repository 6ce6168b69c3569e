// Label selectors: the canonical text reads back as the same selector.
#include <string>

#include "lookout/api/labels.h"
#include "tests/fuzz/fuzzing.h"

using namespace lookout;
using fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const api::Object kObjects[] = {
      api::Object(),
      api::Object::parse(R"({"metadata":{"labels":{"app":"web","tier":"","v":"5","a":"b"}}})"),
      api::Object::parse(R"({"metadata":{"labels":{"x.example.com/y":"1","in":"in","k":"9"}}})"),
  };
  try {
    const auto selector = api::labels::parse(fuzz::text_of(data, size));
    const auto again = api::labels::parse(selector.to_string());
    require(again.to_string() == selector.to_string());
    require(again.empty() == selector.empty());
    for (const auto& object : kObjects) require(again.matches(object) == selector.matches(object));
  } catch (const api::SelectorError& e) {
    require(!e.reason().empty() && e.position() <= size);
  }
  return 0;
}
