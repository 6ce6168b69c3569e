// Field selectors: the canonical text reads back as the same selector.
#include <string>

#include "lookout/api/fields.h"
#include "tests/fuzz/fuzzing.h"

using namespace lookout;
using fuzz::require;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const api::Object kObject = api::Object::parse(
      R"({"metadata":{"name":"a","labels":{"b.c/d":"e"}},"spec":{"n":5,"l":["x",{"y":true}]}})");
  try {
    const auto selector = api::fields::parse(fuzz::text_of(data, size));
    const auto again = api::fields::parse(selector.to_string());
    // Terms are sorted by their text, which contains "==" and unnecessary escapes.
    require(again.requirements().size() == selector.requirements().size());
    require(again.matches(kObject) == selector.matches(kObject));
    require(api::fields::parse(again.to_string()).to_string() == again.to_string());
    for (const auto& [field, value, equal] : selector.requirements()) {
      const auto one = api::fields::parse("f=" + api::fields::escape_value(value)).requirements();
      require(one.size() == 1 && one[0].value.size() >= value.size());
    }
  } catch (const api::SelectorError& e) {
    require(!e.reason().empty() && e.position() <= size);
  }
  return 0;
}
