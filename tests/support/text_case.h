// Table tests for text conversions.
#pragma once

#include <ostream>
#include <string>
#include <string_view>

namespace lookout::test {

/// An input and the expected result: a text, a value or an error.
struct TextCase {
  const char* text;
  const char* expected;
};

/// The same for texts that may contain zeros.
struct TextViewCase {
  std::string_view text;
  std::string_view expected;
};

/// The same with a name, for tests with a parameter.
struct NamedTextCase {
  const char* name;
  std::string text;
  const char* expected;
};
/// For GoogleTest's messages.
inline void PrintTo(const NamedTextCase& c, std::ostream* out) {  // NOLINT: its name
  *out << c.name;
}

}  // namespace lookout::test
