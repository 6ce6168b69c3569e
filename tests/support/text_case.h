// Tests of what becomes of texts.
#pragma once

#include <ostream>
#include <string>

namespace lookout::test {

/// A text, and what is to become of it: another form, a value or the reason of a refusal.
struct TextCase {
  const char* text;
  const char* expected;
};

/// The same with a name, for tests with a parameter.
struct NamedTextCase {
  const char* name;
  std::string text;
  const char* expected;
};
/// How GoogleTest shows it.
inline void PrintTo(const NamedTextCase& c, std::ostream* out) {  // NOLINT: its name
  *out << c.name;
}

}  // namespace lookout::test
